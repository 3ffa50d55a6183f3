#pragma once

#include <string>

#include "docmem/v1/adapter.pb.h"
#include "server/ingest/adapter_intake.h"
#include "server/interceptors/late.h"
#include "server/services/client_stream.h"
#include "server/services/received_bytes.h"

namespace docmem::server {

/// Takes the parts of one adapter and publishes it once all of them, the end message included, have
/// come in the right order. Executor.
class AdapterUploadSink final : public MessageSink<v1::UploadAdapterRequest, v1::Adapter> {
 public:
  /// Both must outlive the sink.
  AdapterUploadSink(const Late<AdapterIntake>* intake, Call* call) : intake_(intake), call_(call) {}

  absl::Status OnMessage(v1::UploadAdapterRequest* message) override;
  absl::Status OnEnd(v1::Adapter* response) override;

 private:
  enum class Expect { kHeader, kFileOrEnd, kChunk, kNothing };

  absl::Status TakeHeader(const v1::AdapterHeader& header);
  absl::Status TakeFile(const v1::AdapterFile& file);
  absl::Status TakeChunk(const std::string& chunk);
  absl::Status TakeEnd(const v1::StreamEnd& end);

  const Late<AdapterIntake>* const intake_;
  Call* const call_;
  Expect expect_ = Expect::kHeader;
  AdapterUpload upload_;
  std::string* file_ = nullptr;  // the one that is being filled
  uint64_t file_bytes_ = 0;      // announced
  uint64_t announced_bytes_ = 0;
  ReceivedBytes received_;
};

}  // namespace docmem::server

#include "server/services/adapter_upload.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors/error.h"
#include "server/services/messages.h"
#include "server/services/validate.h"

namespace docmem::server {
absl::Status AdapterUploadSink::OnMessage(v1::UploadAdapterRequest* message) {
  switch (message->part_case()) {
    case v1::UploadAdapterRequest::kHeader:
      return TakeHeader(message->header());
    case v1::UploadAdapterRequest::kFile:
      return TakeFile(message->file());
    case v1::UploadAdapterRequest::kChunk:
      return TakeChunk(message->chunk());
    case v1::UploadAdapterRequest::kEnd:
      return TakeEnd(message->end());
    case v1::UploadAdapterRequest::PART_NOT_SET:
      break;
  }
  return PartOutOfOrder("is empty; it must be header, file, chunk or end");
}

absl::Status AdapterUploadSink::TakeHeader(const v1::AdapterHeader& header) {
  if (expect_ != Expect::kHeader) return PartOutOfOrder("header must be the first message, once");
  absl::StatusOr<store::DocumentKey> key = CheckKey(*call_, header.collection(), header.document());
  if (!key.ok()) return key.status();
  const auto scope = FromMessage(header.scope());
  if (!scope && header.scope() != v1::ADAPTER_SCOPE_UNSPECIFIED) {
    return InvalidField("scope", "is no adapter scope");
  }
  absl::Status status = CheckDigest("prompt_format_digest", header.prompt_format_digest());
  status.Update(CheckDigest("text_digest", header.text_digest()));
  if (!status.ok()) return status;
  upload_.document = *std::move(key);
  if (scope) upload_.scope = *scope;
  upload_.allow_other_base = header.allow_other_base();
  upload_.prompt_format_digest = header.prompt_format_digest();
  upload_.text_digest = header.text_digest();
  upload_.keep_current = header.keep_current();
  expect_ = Expect::kFileOrEnd;
  return absl::OkStatus();
}

absl::Status AdapterUploadSink::TakeFile(const v1::AdapterFile& file) {
  if (expect_ != Expect::kFileOrEnd) {
    return PartOutOfOrder("file must follow the header or a whole file");
  }
  constexpr const char* kNames[] = {"adapter_config.json", "adapter_model.safetensors",
                                    "README.md"};
  if (file.name() == "adapter_model.bin") {
    return Error(absl::StatusCode::kUnimplemented, reason::kAdapterUnsupported,
                 "file.name: pickled adapters aren't read; convert to adapter_model.safetensors",
                 {{"field", "file.name"}});
  }
  if (std::find(std::begin(kNames), std::end(kNames), file.name()) == std::end(kNames)) {
    return InvalidField("file.name",
                        "must be adapter_config.json, adapter_model.safetensors or README.md",
                        reason::kAdapterInvalid);
  }
  if (file.size_bytes() > kMaxAdapterBytes - announced_bytes_) {
    return InvalidField("file.size_bytes",
                        absl::StrCat("makes the adapter larger than ", kMaxAdapterBytes, " bytes"),
                        reason::kLimitExceeded);
  }
  const auto [place, added] = upload_.files.try_emplace(file.name());
  if (!added) return InvalidField("file.name", "comes twice", reason::kAdapterInvalid);
  announced_bytes_ += file.size_bytes();
  file_ = &place->second;
  file_bytes_ = file.size_bytes();
  if (file_bytes_ != 0) expect_ = Expect::kChunk;
  return absl::OkStatus();
}

absl::Status AdapterUploadSink::TakeChunk(const std::string& chunk) {
  if (expect_ != Expect::kChunk) return PartOutOfOrder("chunk must follow its file");
  if (chunk.size() > file_bytes_ - file_->size()) {
    return InvalidField("chunk", "has more bytes than the file announced",
                        reason::kChecksumMismatch);
  }
  file_->append(chunk);
  received_.Add(chunk);
  if (file_->size() == file_bytes_) expect_ = Expect::kFileOrEnd;
  return absl::OkStatus();
}

absl::Status AdapterUploadSink::TakeEnd(const v1::StreamEnd& end) {
  if (expect_ != Expect::kFileOrEnd) return PartOutOfOrder("end must follow a whole file");
  if (absl::Status status = received_.CheckEnd(end); !status.ok()) return status;
  expect_ = Expect::kNothing;
  return absl::OkStatus();
}

absl::Status AdapterUploadSink::OnEnd(v1::Adapter* response) {
  if (expect_ != Expect::kNothing)
    return PartOutOfOrder("the stream stopped before its end message");
  const absl::StatusOr<store::Adapter> adapter = (*intake_)->Publish(std::move(upload_));
  if (!adapter.ok()) return adapter.status();
  *response = ToMessage(*adapter);
  return absl::OkStatus();
}

}  // namespace docmem::server

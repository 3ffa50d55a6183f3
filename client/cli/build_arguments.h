#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/arguments.h"
#include "client/cli/environment.h"
#include "client/cli/progress_line.h"
#include "docmem/v1/common.pb.h"
#include "docmem/v1/document.pb.h"

namespace docmem::cli {

/// The options that say which caches are built.
class BuildArguments {
 public:
  void Declare(ArgumentList* arguments);

  /// Into IngestOptions or BuildCacheRequest, whose fields have the same names. A usage error where
  /// options exclude each other; other errors where the system text can't be read.
  template <class Message>
  absl::Status Fill(Message* message) const {
    message->mutable_ratio_ppm()->Assign(ratio_ppm_.begin(), ratio_ppm_.end());
    for (const v1::Profile profile : profiles_) message->add_profiles(profile);
    message->set_kv_dtype(kv_dtype_);
    absl::StatusOr<std::string> system_text = SystemText();
    if (!system_text.ok()) return system_text.status();
    if (has_system_text()) message->set_system_text(*std::move(system_text));
    return absl::OkStatus();
  }

 private:
  bool has_system_text() const { return system_text_set_ || !system_text_file_.empty(); }
  absl::StatusOr<std::string> SystemText() const;

  std::vector<uint32_t> ratio_ppm_;
  std::vector<v1::Profile> profiles_;
  v1::KvDtype kv_dtype_ = v1::KV_DTYPE_UNSPECIFIED;
  std::string system_text_;
  bool system_text_set_ = false;
  std::string system_text_file_;
};

/// Shows how far an ingestion or a cache build is.
void ShowBuildProgress(const v1::BuildProgress& progress, ProgressLine* line);

}  // namespace docmem::cli

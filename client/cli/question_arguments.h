#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/arguments.h"
#include "docmem/v1/query.pb.h"

namespace docmem::cli {

/// The options that select which memories answer.
class MemoryArguments {
 public:
  void Declare(ArgumentList* arguments);
  /// A usage error where options exclude each other.
  absl::StatusOr<v1::MemorySelection> Build(const std::string& document) const;

 private:
  std::string collection_;
  v1::Mode mode_ = v1::MODE_UNSPECIFIED;
  std::optional<uint32_t> ratio_ppm_;
  std::string cache_id_;
  v1::Profile profile_ = v1::PROFILE_UNSPECIFIED;
  bool build_ = false;
  uint32_t adapter_version_ = 0;
  v1::AdapterScope adapter_scope_ = v1::ADAPTER_SCOPE_UNSPECIFIED;
  bool allow_adapter_mismatch_ = false;
};

/// The options that shape an answer.
class AnswerArguments {
 public:
  void Declare(ArgumentList* arguments);
  void Fill(v1::AskRequest* request) const;

 private:
  uint32_t max_tokens_ = 0;
  double temperature_ = 0;
  double top_p_ = 0;
  uint32_t top_k_ = 0;
  std::optional<uint64_t> seed_;
  std::vector<std::string> stop_;
  bool log_probabilities_ = false;
  v1::Priority priority_ = v1::PRIORITY_UNSPECIFIED;
};

/// Declares `--collection`.
void DeclareCollection(ArgumentList* arguments, std::string* collection);

/// Declares `--instruction`.
void DeclareInstruction(ArgumentList* arguments, std::string* instruction);

}  // namespace docmem::cli

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/arguments.h"
#include "client/cli/environment.h"
#include "docmem/v1/training.pb.h"

namespace docmem::cli {

/// The options that say how an adapter is trained. What isn't given is the daemon's choice.
class TrainingArguments {
 public:
  void Declare(ArgumentList* arguments);

  /// Errors where the file of pairs can't be read; they name file and line.
  absl::Status Fill(const Environment& environment, v1::TrainingOptions* options) const;

 private:
  v1::Supervision supervision_ = v1::SUPERVISION_UNSPECIFIED;
  std::string qa_file_;
  std::optional<uint32_t> synthetic_pairs_;
  std::optional<uint32_t> rank_;
  std::optional<double> alpha_;
  std::vector<std::string> modules_;
  std::optional<double> dropout_;
  std::optional<uint32_t> epochs_;
  std::optional<double> learning_rate_;
  std::optional<uint32_t> batch_size_;
  std::optional<uint32_t> accumulation_;
  std::optional<double> holdout_;
  std::optional<uint32_t> patience_;
  std::optional<uint64_t> seed_;
  bool recompute_ = false;
  bool keep_current_ = false;
};

}  // namespace docmem::cli

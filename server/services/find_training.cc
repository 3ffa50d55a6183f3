#include "server/services/find_training.h"

#include "absl/strings/str_cat.h"
#include "server/errors/error.h"

namespace docmem::server {

absl::StatusOr<TrainingReport> FindTraining(const Principal& caller, Trainings& trainings,
                                            const std::string& id) {
  constexpr size_t kQuotedBytes = 64;
  absl::StatusOr<TrainingReport> report = trainings.Get(id);
  const bool hidden = report.ok() ? !caller.collections.contains(report->document.collection)
                                  : store::ReasonOf(report.status()) == reason::kJobNotFound;
  if (!hidden) return report;
  return Error(absl::StatusCode::kNotFound, reason::kJobNotFound,
               absl::StrCat("no training '", id.substr(0, kQuotedBytes), "'"));
}

absl::StatusOr<TrainingReport> FindTraining(Call& call, Trainings& trainings,
                                            const std::string& id) {
  absl::StatusOr<TrainingReport> report = FindTraining(call.principal(), trainings, id);
  if (report.ok()) call.About(report->document.collection, id);
  return report;
}

}  // namespace docmem::server

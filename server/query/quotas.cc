#include "server/query/quotas.h"

#include "absl/strings/str_cat.h"
#include "server/errors/error.h"

namespace docmem::server {
namespace {

absl::Status Exceeded(const char* reason, const std::string& who, const char* what, uint32_t used,
                      uint32_t limit) {
  return Error(absl::StatusCode::kResourceExhausted, reason,
               absl::StrCat(who, " has ", used, " of at most ", limit, " questions ", what,
                            "; try again when some have ended"),
               {{"limit", absl::StrCat(limit)}, {"used", absl::StrCat(used)}});
}

}  // namespace

absl::Status Quotas::Check(const std::string& who, const QuestionLimits& limits) {
  const auto found = counts_.find(who);
  if (found == counts_.end()) return absl::OkStatus();
  Count& count = found->second;
  if (limits.max_in_flight != 0) {
    const bool reopens = uint64_t{count.in_flight} * 10 <= uint64_t{limits.max_in_flight} * 9;
    count.full = count.in_flight >= limits.max_in_flight || (count.full && !reopens);
    if (count.full) {
      return Exceeded(reason::kQuotaMaxInFlight, who, "under way", count.in_flight,
                      limits.max_in_flight);
    }
  }
  if (limits.max_queued != 0 && count.queued >= limits.max_queued) {
    return Exceeded(reason::kQuotaMaxQueued, who, "waiting", count.queued, limits.max_queued);
  }
  return absl::OkStatus();
}

void Quotas::Enter(const std::string& who) {
  Count& count = counts_[who];
  ++count.in_flight;
  ++count.queued;
}

void Quotas::Run(const std::string& who) { --counts_.at(who).queued; }

void Quotas::Leave(const std::string& who, bool waited) {
  const auto found = counts_.find(who);
  Count& count = found->second;
  if (waited) --count.queued;
  if (--count.in_flight == 0) counts_.erase(found);
}

}  // namespace docmem::server

#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"

namespace docmem::server {

/// Of the questions of one principal or on one collection; 0: no limit.
struct QuestionLimits {
  uint32_t max_in_flight = 0;  ///< admitted ones, whether they wait or run
  uint32_t max_queued = 0;     ///< those of them that wait
  bool operator==(const QuestionLimits&) const = default;
};

/// Counts questions by whose they are, and says when one more would be too many. Not thread-safe.
class Quotas {
 public:
  /// RESOURCE_EXHAUSTED (QUOTA_MAX_IN_FLIGHT, QUOTA_MAX_QUEUED) with limit and use. Where the
  /// in-flight limit has refused one, it refuses all until use is down to 90 % of it: otherwise
  /// those who try again would be let in one by one and refused again. `who` is as people read it,
  /// such as "collection 'law'".
  absl::Status Check(const std::string& who, const QuestionLimits& limits);

  void Enter(const std::string& who);  ///< one more, which waits
  void Run(const std::string& who);    ///< one of those that waited runs
  void Leave(const std::string& who, bool waited);

 private:
  struct Count {
    uint32_t in_flight = 0;
    uint32_t queued = 0;
    bool full = false;
  };
  std::map<std::string, Count> counts_;  // of those who have some
};

}  // namespace docmem::server

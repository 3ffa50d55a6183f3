#pragma once

#include <set>
#include <string>
#include <utility>

#include "server/query/quotas.h"

namespace docmem::server {

/// Each includes the rights of those before it.
enum class Role { kQuery, kWrite, kAdmin };

/// The collections that somebody may use: all, or named ones, whether they exist or not. None
/// unless said otherwise.
class AllowedCollections {
 public:
  AllowedCollections() = default;
  explicit AllowedCollections(std::set<std::string> names) : names_(std::move(names)) {}
  static AllowedCollections All() {
    AllowedCollections all;
    all.all_ = true;
    return all;
  }

  bool all() const { return all_; }
  bool contains(const std::string& name) const { return all_ || names_.contains(name); }
  const std::set<std::string>& names() const { return names_; }  ///< empty where all are allowed
  bool operator==(const AllowedCollections&) const = default;

 private:
  bool all_ = false;
  std::set<std::string> names_;
};

/// Who calls.
struct Principal {
  std::string name;
  Role role = Role::kQuery;
  AllowedCollections collections;
  QuestionLimits limits;
  bool operator==(const Principal&) const = default;
};

}  // namespace docmem::server

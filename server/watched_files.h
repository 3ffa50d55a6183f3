#pragma once

#include <string>
#include <vector>

namespace docmem::server {

/// Tells when one of a few files was replaced, rewritten or removed since it was last read, also
/// through a link that names another file now. Used by one thread.
class WatchedFiles {
 public:
  explicit WatchedFiles(std::vector<std::string> paths);

  /// True once for each change, as soon as two calls have seen the same: what somebody is still
  /// writing isn't read. A file that isn't there is a state like any other.
  bool Changed();

 private:
  std::string Look() const;

  const std::vector<std::string> paths_;
  std::string known_;
  std::string latest_;
};

}  // namespace docmem::server

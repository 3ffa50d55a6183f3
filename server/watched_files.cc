#include "server/watched_files.h"

#include <sys/stat.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace docmem::server {

WatchedFiles::WatchedFiles(std::vector<std::string> paths)
    : paths_(std::move(paths)), known_(Look()), latest_(known_) {}

bool WatchedFiles::Changed() {
  const std::string before = std::exchange(latest_, Look());
  if (latest_ != before || latest_ == known_) return false;
  known_ = latest_;
  return true;
}

std::string WatchedFiles::Look() const {
  std::string all;
  for (const std::string& path : paths_) {
    struct stat file = {};
    if (stat(path.c_str(), &file) != 0) file = {};
    absl::StrAppend(&all, file.st_dev, " ", file.st_ino, " ", file.st_size, " ",
                    file.st_mtim.tv_sec, " ", file.st_mtim.tv_nsec, " ", file.st_ctim.tv_sec, " ",
                    file.st_ctim.tv_nsec, "\n");
  }
  return all;
}

}  // namespace docmem::server

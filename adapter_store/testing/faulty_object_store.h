#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "adapter_store/files/object_store.h"

namespace docmem::store::store_test {

/// A folder whose calls fail as a test says. Set what it says while nothing else uses it.
class FaultyObjectStore : public ObjectStore {
 public:
  explicit FaultyObjectStore(const std::string& folder) : base_(*OpenObjectStore(folder)) {}
  absl::Status Put(const std::string& key, const ReadableFile& file) override {
    const absl::Status status = put.ok() ? base_->Put(key, file) : put;
    if (on_put) on_put(key);
    return status;
  }
  absl::Status Get(const std::string& key, std::span<std::byte> buffer) override {
    ++gets;
    if (!once.ok()) return std::exchange(once, absl::OkStatus());
    return get.ok() ? base_->Get(key, buffer) : get;
  }
  absl::Status DeleteAll(const std::string& prefix) override {
    return remove.ok() ? base_->DeleteAll(prefix) : remove;
  }

  std::atomic<int> gets = 0;
  absl::Status put, get, remove;                  ///< what they return instead; OK: they work
  absl::Status once;                              ///< of the next `Get` alone
  std::function<void(const std::string&)> on_put;  ///< behind each `Put`

 private:
  const std::unique_ptr<ObjectStore> base_;
};

}  // namespace docmem::store::store_test

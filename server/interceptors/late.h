#pragma once

#include <atomic>

namespace docmem::server {

/// A part of the daemon that services are built with before it exists: it is set once the daemon
/// has loaded, and the guard lets no call through before, nor one that needs what recovery mode
/// lacks. Not an owner.
template <class Part>
class Late {
 public:
  void Set(Part* part) { part_.store(part); }
  /// Null before the daemon has loaded.
  Part* get() const { return part_.load(); }
  Part* operator->() const { return get(); }
  Part& operator*() const { return *get(); }

 private:
  std::atomic<Part*> part_{nullptr};
};

}  // namespace docmem::server

#pragma once

#include <atomic>

#include "server/config.h"

namespace docmem::server {

/// What signals ask for, set at any moment.
struct Wishes {
  /// While loading it ends the load, later it begins the drain.
  std::atomic<bool> stop{false};
  /// Read the files of tokens and certificates again; taken back once that is done.
  std::atomic<bool> reload{false};
};

/// Runs the daemon from listening to the end of its stop; the composition root. Gives the exit
/// code: 0 after an ordered stop, 1 when it can't start (said in the log).
///
/// Start and stop are the sequences of docs/architecture.md.
int RunDaemon(const ServerOptions& options, Wishes* wishes);

}  // namespace docmem::server

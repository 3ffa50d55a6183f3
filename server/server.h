#pragma once

#include <atomic>

#include "server/config.h"

namespace docmem::server {

/// Runs the daemon from listening to the end of its stop; the composition root. Gives the exit
/// code: 0 after an ordered stop, 1 when it can't start (said in the log).
///
/// `stop` is set by a signal, at any moment: while loading it ends the load, later it begins the
/// drain. Start and stop are the sequences of docs/architecture.md.
int RunDaemon(const ServerOptions& options, const std::atomic<bool>& stop);

}  // namespace docmem::server

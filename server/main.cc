#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "server/config.h"
#include "server/server.h"

namespace {

constexpr int kUsageError = 2;

// The only state that a signal handler may touch.
docmem::server::Wishes wishes;
static_assert(std::atomic<bool>::is_always_lock_free);

// The second signal doesn't wait for anything.
void OnStop(int) {
  if (wishes.stop.exchange(true)) _exit(EXIT_FAILURE);
}

void OnReload(int) { wishes.reload.store(true); }

void InstallHandlers() {
  struct sigaction action = {};
  action.sa_handler = OnStop;
  sigemptyset(&action.sa_mask);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  action.sa_handler = OnReload;
  sigaction(SIGHUP, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace

int main(int argc, char** argv) {
  const auto invocation = docmem::server::ReadConfig(
      argc, argv, [](const char* name) -> const char* { return std::getenv(name); });
  if (!invocation.ok()) {
    std::fprintf(stderr, "docmemd: %s\n", std::string(invocation.status().message()).c_str());
    return kUsageError;
  }
  if (!invocation->print.empty()) {
    std::fputs(invocation->print.c_str(), stdout);
    return EXIT_SUCCESS;
  }
  InstallHandlers();
  return docmem::server::RunDaemon(invocation->options, &wishes);
}

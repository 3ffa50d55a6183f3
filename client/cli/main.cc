#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "client/cli/cli.h"

namespace {

// Turns the first Ctrl-C into a wish to stop and a second one into the end. Signals must be blocked
// in all threads, so it is made before any other.
class Interrupts {
 public:
  Interrupts() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    thread_ = std::thread([this] { Wait(); });
  }

  ~Interrupts() {
    ending_ = true;
    pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
  }

  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  std::stop_token stop() const { return source_.get_token(); }

 private:
  void Wait() {
    for (;;) {
      int signal = 0;
      sigwait(&signals_, &signal);
      if (ending_) return;
      if (source_.stop_requested()) _exit(docmem::cli::kStopped);
      source_.request_stop();
    }
  }

  sigset_t signals_;
  std::stop_source source_;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

void LeaveAtOnce() {
  if (isatty(STDERR_FILENO) == 1) std::cerr << std::endl;
  _exit(docmem::cli::kStopped);
}

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  const Interrupts interrupts;
  const docmem::cli::Environment environment{
      .in = &std::cin,
      .out = &std::cout,
      .err = &std::cerr,
      .in_is_terminal = isatty(STDIN_FILENO) == 1,
      .out_is_terminal = isatty(STDOUT_FILENO) == 1,
      .err_is_terminal = isatty(STDERR_FILENO) == 1,
      .variable = [](const char* name) { return static_cast<const char*>(std::getenv(name)); },
      .stop = interrupts.stop(),
      .leave = LeaveAtOnce};
  return docmem::cli::Run(std::vector<std::string>(argv + 1, argv + argc), environment);
}

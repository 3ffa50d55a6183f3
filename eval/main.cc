#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "engine/formats/error.h"
#include "eval/evaluation.h"
#include "eval/files.h"
#include "eval/options.h"
#include "eval/progress_line.h"

namespace {

using docmem::eval::Invocation;
using docmem::eval::Summary;

constexpr int kUsageError = 2;
constexpr int kStopped = 130;

// The only state that a signal handler may touch.
std::atomic<bool> stop{false};
static_assert(std::atomic<bool>::is_always_lock_free);

// The second signal doesn't wait for anything.
void OnSignal(int) {
  if (stop.exchange(true)) _exit(kStopped);
}

Summary Run(const Invocation& invocation) {
  docmem::eval::EvaluationRequest request;
  request.documents = docmem::eval::ReadDataSet(docmem::eval::ReadWhole(invocation.data),
                                                invocation.data.filename().string());
  if (invocation.documents > 0 && invocation.documents < request.documents.size()) {
    request.documents.resize(invocation.documents);
  }
  request.settings = invocation.settings;
  request.output = invocation.output;
  request.engine = docmem::engine::Engine::Load(invocation.engine);
  docmem::eval::ProgressLine line(stderr);
  return docmem::eval::Evaluate(request, [&line](const docmem::eval::Progress& progress) {
    line.Show(progress);
    if (stop) docmem::engine::ThrowCancelled("stopped; the same command goes on from here");
  });
}

void Print(const Summary& summary, const std::filesystem::path& output) {
  for (const docmem::eval::Skipped& skipped : summary.skipped) {
    std::fprintf(stderr, "not evaluated: %s%s%s: %s\n", skipped.document.c_str(),
                 skipped.supervision ? ", " : "",
                 skipped.supervision
                     ? std::string(docmem::training::SupervisionName(*skipped.supervision)).c_str()
                     : "",
                 skipped.reason.c_str());
  }
  std::printf("%zu predictions in %s\n", summary.predictions,
              (output / "predictions.jsonl").c_str());
}

}  // namespace

int main(int argc, char** argv) {
  Invocation invocation;
  try {
    invocation = docmem::eval::ReadCommandLine(argc, argv);
  } catch (const docmem::engine::Error& error) {
    std::fprintf(stderr, "docmem-eval: %s\n", error.what());
    return kUsageError;
  }
  if (!invocation.print.empty()) {
    std::fputs(invocation.print.c_str(), stdout);
    return EXIT_SUCCESS;
  }
  std::signal(SIGINT, OnSignal);
  std::signal(SIGTERM, OnSignal);
  try {
    Print(Run(invocation), invocation.output);
    return EXIT_SUCCESS;
  } catch (const docmem::engine::Error& error) {
    std::fprintf(stderr, "docmem-eval: %s\n", error.what());
    return error.kind() == docmem::engine::ErrorKind::kCancelled ? kStopped : EXIT_FAILURE;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "docmem-eval: %s\n", error.what());
    return EXIT_FAILURE;
  }
}

// Measures the engine on request: one JSON object per line in, one out, so that `./dev bench` can
// let the engine and its peers take turns. Times are seconds of wall clock.
//   engine_worker MODEL_FOLDER DTYPE THREADS [DEVICE]
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/inputs.h"
#include "bench/weight_sweep.h"
#include "bench/worker_lines.h"
#include "engine/engine.h"
#include "engine/model/testing.h"
#include "engine/session.h"
#include "engine/testing.h"

namespace docmem::engine {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

double Seconds(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class Worker {
 public:
  explicit Worker(const EngineOptions& options)
      : options_(options), engine_(Engine::Load(options)) {}

  Json Measure(const Json& request) {
    const std::string name = request.at("measure");
    if (name == "ingest") return Ingest(request.at("tokens"), request.at("ratio_ppm"));
    if (name == "decode") return Decode(request);
    if (name == "first_token") return FirstToken(request.at("tokens"), request.at("cold"));
    if (name == "sweep") return Sweep();
    if (name == "load_cache") return LoadCache(request.at("tokens"));
    if (name == "load_adapter") return LoadAdapter(request.at("rank"));
    if (name == "bytes") return Bytes(request.at("tokens"), request.at("rank"));
    if (name == "peak") return {{"bytes", bench::PeakBytes()}};
    throw std::invalid_argument("no measure '" + name + "'");
  }

 private:
  std::shared_ptr<const Cache> CacheOf(int64_t tokens, uint32_t ratio_ppm) {
    std::shared_ptr<const Cache>& cache = caches_[{tokens, ratio_ppm}];
    if (cache == nullptr) {
      cache = testing::Ingest(*engine_, bench::ContextOf(tokens), {.ratio_ppm = ratio_ppm});
    }
    return cache;
  }

  std::shared_ptr<const Adapter> AdapterOf(int number, int64_t rank) {
    std::shared_ptr<const Adapter>& adapter = adapters_[{number, rank}];
    if (adapter == nullptr) {
      adapter = engine_->LoadAdapter(bench::Loaded(bench::AdapterFile(*engine_, number, rank)));
    }
    return adapter;
  }

  Json Ingest(int64_t tokens, uint32_t ratio_ppm) {
    double scoring = 0.0;
    const double seconds = Seconds([&] {
      const auto ingestion =
          engine_->StartIngestion(bench::ContextOf(tokens), {{.ratio_ppm = ratio_ppm}});
      while (!ingestion->Step()) {
      }
      ingestion->TakeCaches();
      scoring = ingestion->score_seconds();
    });
    return {{"seconds", seconds}, {"score_seconds", scoring}};
  }

  // `streams` sequences with a 64-token prompt each, `tokens` greedy tokens; the prompts' steps
  // aren't counted. rank 0: base model; else every stream has an adapter of its own.
  Json Decode(const Json& request) {
    const int64_t streams = request.at("streams"), tokens = request.at("tokens");
    const int64_t rank = request.at("rank");
    const auto cache = CacheOf(20, 1'000'000);
    Session session(engine_);
    for (int64_t i = 0; i < streams; ++i) {
      session.Add({.cache = cache,
                   .adapter = rank == 0 ? nullptr : AdapterOf(static_cast<int>(i), rank),
                   .prompt_ids = bench::PromptOf(i),
                   .max_tokens = static_cast<uint32_t>(tokens + 1)});
    }
    int64_t produced = 0;
    const auto step = [&] {
      for (const SequenceEvent& event : session.Step()) {
        produced += static_cast<int64_t>(event.token_ids.size());
      }
    };
    while (produced < streams) step();
    produced = 0;
    const double seconds = Seconds([&] {
      while (session.running() > 0) step();
    });
    if (produced < streams * tokens / 2) throw std::runtime_error("the answers ended too early");
    return {{"seconds", seconds}, {"tokens", produced}};
  }

  // A question of 32 tokens on a document at ρ = 0.9: from the request to its first token. Cold:
  // the cache comes from its file, which isn't in the page cache.
  Json FirstToken(int64_t tokens, bool cold) {
    std::shared_ptr<const Cache> cache = CacheOf(tokens, 900'000);
    const std::string file = cold ? CacheFile(*cache) : "";
    if (cold) bench::DropFromPageCache(file);
    std::vector<int32_t> prompt;
    for (int32_t i = 0; i < 32; ++i) prompt.push_back(700 + 41 * i);
    const int64_t read_before = bench::BytesFromDisk();
    const double seconds = Seconds([&] {
      if (cold) cache = engine_->LoadCache(bench::ReadFile(file));
      Session session(engine_);
      session.Add({.cache = cache, .prompt_ids = prompt, .max_tokens = 1});
      while (session.running() > 0) session.Step();
    });
    return {{"seconds", seconds}, {"bytes_from_disk", bench::BytesFromDisk() - read_before}};
  }

  Json Sweep() {
    constexpr int kRows = 32;
    if (!sweep_) sweep_.emplace(options_, *engine_);
    const double seconds = Seconds([&] { sweep_->Run(kRows); });
    return {{"seconds", seconds}, {"tokens", kRows}, {"bytes", sweep_->bytes()}};
  }

  std::string CacheFile(const Cache& cache) {
    const std::string path = (folder_.path() / (cache.identity().Digest() + ".cache")).string();
    std::ofstream file(path, std::ios::binary);
    WriteCacheFile(cache, [&file](std::span<const std::byte> bytes) {
      file.write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
    });
    return path;
  }

  Json LoadCache(int64_t tokens) {
    return Load(CacheFile(*CacheOf(tokens, 0)),
                [&](const SharedBytes& file) { engine_->LoadCache(file); });
  }

  Json LoadAdapter(int64_t rank) {
    const std::string path = (folder_.path() / ("rank-" + std::to_string(rank))).string();
    std::ofstream(path, std::ios::binary) << bench::AdapterFile(*engine_, 0, rank);
    return Load(path, [&](const SharedBytes& file) { engine_->LoadAdapter(file); });
  }

  // Reading a file with all checks, against reading the same bytes alone, in turn: medians. The
  // file lies in the page cache, so that what the checks cost isn't lost behind the disk.
  static Json Load(const std::string& path, const std::function<void(const SharedBytes&)>& decode) {
    constexpr int kPairs = 9;
    const auto load = [&] { decode(bench::ReadFile(path)); };
    load();
    std::vector<double> ours, plain;
    for (int i = 0; i < kPairs; ++i) {
      ours.push_back(Seconds(load));
      plain.push_back(Seconds([&] { bench::ReadFile(path); }));
    }
    return {{"seconds", Median(ours)},
            {"plain_seconds", Median(plain)},
            {"bytes", std::filesystem::file_size(path)}};
  }

  Json Bytes(int64_t tokens, int64_t rank) {
    return {{"full_kv", engine_->KvBytes(tokens)},
            {"cache_0.9", CacheOf(tokens, 900'000)->bytes()},
            {"adapter", AdapterOf(0, rank)->bytes()}};
  }

  EngineOptions options_;
  std::shared_ptr<const Engine> engine_;
  std::map<std::pair<int64_t, uint32_t>, std::shared_ptr<const Cache>> caches_;
  std::map<std::pair<int, int64_t>, std::shared_ptr<const Adapter>> adapters_;
  std::optional<bench::WeightSweep> sweep_;
  testing::TemporaryFolder folder_;
};

int Run(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    std::cerr << "usage: engine_worker MODEL_FOLDER DTYPE THREADS [DEVICE]\n";
    return 2;
  }
  Worker worker({.model_dir = argv[1],
                 .device = argc == 5 ? argv[4] : "cpu",
                 .dtype = argv[2],
                 .threads = std::stoi(argv[3])});
  bench::ServeLines([&](const Json& request) { return worker.Measure(request); });
  return 0;
}

}  // namespace
}  // namespace docmem::engine

int main(int argc, char** argv) { return docmem::engine::Run(argc, argv); }

// Measures the engine on request: one JSON object per line in, one out, so that `./dev bench` can
// let the engine and its peers take turns. Times are seconds of wall clock.
//   engine_worker MODEL_FOLDER DTYPE THREADS [DEVICE]
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/worker_lines.h"
#include "engine/artifacts/adapter_file.h"
#include "engine/engine.h"
#include "engine/kernels/huge_buffer.h"
#include "engine/kernels/parallel.h"
#include "engine/model/tensor_matrix.h"
#include "engine/model/testing.h"
#include "engine/model/transformer.h"
#include "engine/model/weights.h"
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
    if (name == "load") return Load(request.at("tokens"));
    if (name == "gap") return Gap(request.at("tokens"));
    if (name == "bytes") return Bytes(request.at("tokens"), request.at("rank"));
    if (name == "peak") return {{"bytes", bench::PeakBytes()}};
    throw std::invalid_argument("no measure '" + name + "'");
  }

 private:
  // The same ids as the peers get.
  Context ContextOf(int64_t tokens) const {
    Context context;
    for (int64_t i = 0; i < tokens; ++i) {
      context.ids.push_back(static_cast<int32_t>(i * 7919 % 20'000 + 100));
    }
    context.head_tokens = std::min<int64_t>(20, tokens);
    return context;
  }

  std::shared_ptr<const Cache> CacheOf(int64_t tokens, uint32_t ratio_ppm) {
    std::shared_ptr<const Cache>& cache = caches_[{tokens, ratio_ppm}];
    if (cache == nullptr) {
      cache = testing::Ingest(*engine_, ContextOf(tokens), {.ratio_ppm = ratio_ppm});
    }
    return cache;
  }

  std::shared_ptr<const Adapter> AdapterOf(int number, int64_t rank) {
    std::shared_ptr<const Adapter>& adapter = adapters_[{number, rank}];
    if (adapter == nullptr) {
      constexpr Module kAll[] = {Module::kQ,    Module::kK,  Module::kV,   Module::kO,
                                 Module::kGate, Module::kUp, Module::kDown};
      LoraWeights weights =
          testing::RandomLora(engine_->config(), kAll, rank, engine_->transformer().dtype(),
                              static_cast<uint64_t>(number));
      for (auto& layer : weights.layers) {
        for (LoraPair& pair : layer) pair.scale = 0.01;
      }
      // As a loaded adapter lies in memory.
      const std::string file = PackedAdapterFile(std::to_string(number), weights);
      const auto buffer = std::make_shared<HugeBuffer>(file.size());
      std::byte* const bytes = buffer->Take(file.size());
      std::ranges::copy(std::as_bytes(std::span(file)), bytes);
      adapter = engine_->LoadAdapter({.owner = buffer, .bytes = {bytes, file.size()}});
    }
    return adapter;
  }

  Json Ingest(int64_t tokens, uint32_t ratio_ppm) {
    double scoring = 0.0;
    const double seconds = Seconds([&] {
      const auto ingestion = engine_->StartIngestion(ContextOf(tokens), {{.ratio_ppm = ratio_ppm}});
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
      std::vector<int32_t> prompt;
      for (int64_t j = 0; j < 44; ++j)
        prompt.push_back(static_cast<int32_t>(500 + 37 * j + 11 * i));
      session.Add({.cache = cache,
                   .adapter = rank == 0 ? nullptr : AdapterOf(static_cast<int>(i), rank),
                   .prompt_ids = prompt,
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

  // The 99th percentile of the time between two tokens of one stream: alone, and while a context is
  // ingested, one unit of work between two steps as in the daemon's engine loop.
  Json Gap(int64_t tokens) {
    const std::shared_ptr<const Cache> cache = CacheOf(20, 1'000'000);
    Session session(engine_);
    const auto next_token = [&] {
      if (session.running() == 0) {
        session.Add({.cache = cache, .prompt_ids = {500, 501, 502}, .max_tokens = 1000});
      }
      session.Step();
    };
    const auto p99 = [](std::vector<double> gaps) {
      std::ranges::sort(gaps);
      return gaps[gaps.size() * 99 / 100];
    };
    std::vector<double> alone, beside;
    for (int i = 0; i < 200; ++i) alone.push_back(Seconds(next_token));
    const auto ingestion = engine_->StartIngestion(ContextOf(tokens), {{.ratio_ppm = 900'000}});
    for (bool done = false; !done;) {
      beside.push_back(Seconds([&] {
        done = ingestion->Step();
        next_token();
      }));
    }
    return {{"seconds", p99(beside)}, {"allowed_seconds", 3.0 * p99(alone)}};
  }

  // A question of 32 tokens on a document at ρ = 0.9: from the request to its first token. Cold:
  // the cache comes from its file, which lies in the page cache.
  Json FirstToken(int64_t tokens, bool cold) {
    std::shared_ptr<const Cache> cache = CacheOf(tokens, 900'000);
    const std::string file = cold ? FileOf(*cache) : "";
    std::vector<int32_t> prompt;
    for (int32_t i = 0; i < 32; ++i) prompt.push_back(700 + 41 * i);
    const double seconds = Seconds([&] {
      if (cold) cache = LoadFile(file);
      Session session(engine_);
      session.Add({.cache = cache, .prompt_ids = prompt, .max_tokens = 1});
      while (session.running() > 0) session.Step();
    });
    return {{"seconds", seconds}};
  }

  // One row through all linear weights and the head: what decoding one token reads at least.
  Json Sweep() {
    const c10::InferenceMode inference;
    if (sweep_.empty()) PackSweep();
    const KernelTable& kernels = BestKernels();
    const NumberType type = sweep_.front().type();
    std::vector<float> x(16'384), y(200'000);
    const int passes = 32;
    const double seconds = Seconds([&] {
      for (int pass = 0; pass < passes; ++pass) {
        for (const PackedMatrix& matrix : sweep_) {
          const Matrix in = {x.data(), type, 1, matrix.inputs(), matrix.inputs()};
          const Matrix out = {y.data(), type, 1, matrix.outputs(), matrix.outputs()};
          OnAllWorkers([&](const engine::Worker& worker) {
            const auto [first, count] = worker.Share(matrix.panels(), 2);
            kernels.linear({&matrix, nullptr, in, out, first, count});
          });
        }
      }
    });
    size_t bytes = 0;
    for (const PackedMatrix& matrix : sweep_) bytes += matrix.bytes();
    return {{"seconds", seconds}, {"tokens", passes}, {"bytes", bytes}};
  }

  void PackSweep() {
    const ModelConfig& config = engine_->config();
    const Weights weights =
        LoadWeights(options_.model_dir, config, {.dtype = engine_->transformer().dtype()});
    constexpr size_t kPadding = size_t{8} << 20;
    const auto buffer = std::make_shared<HugeBuffer>(
        engine_->parameters() * at::elementSize(engine_->transformer().dtype()) + kPadding);
    const auto add = [&](std::initializer_list<at::Tensor> tensors) {
      std::vector<Matrix> matrices;
      for (const at::Tensor& tensor : tensors) matrices.push_back(MatrixOf(tensor));
      sweep_.emplace_back(matrices, matrices.front().type, buffer);
    };
    for (const LayerWeights& layer : weights.layers) {
      const auto& m = layer.matrix;
      add({m[0], m[1], m[2]});
      add({m[3]});
      add({m[4], m[5]});
      add({m[6]});
    }
    add({weights.head});
  }

  std::string FileOf(const Cache& cache) {
    const std::string path = (folder_.path() / (cache.identity().Digest() + ".cache")).string();
    std::ofstream file(path, std::ios::binary);
    WriteCacheFile(cache, [&file](std::span<const std::byte> bytes) {
      file.write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
    });
    return path;
  }

  struct ReadFile {
    std::shared_ptr<HugeBuffer> buffer;
    std::span<const std::byte> bytes;
  };

  // Into the kind of buffer that the daemon loads into.
  static ReadFile Read(const std::string& path) {
    const size_t size = std::filesystem::file_size(path);
    const auto buffer = std::make_shared<HugeBuffer>(size);
    std::byte* const bytes = buffer->Take(size);
    std::ifstream file(path, std::ios::binary);
    file.read(reinterpret_cast<char*>(bytes), static_cast<std::streamsize>(size));
    return {buffer, {bytes, size}};
  }

  std::shared_ptr<const Cache> LoadFile(const std::string& path) const {
    const ReadFile file = Read(path);
    return engine_->LoadCache({.owner = file.buffer, .bytes = file.bytes});
  }

  // Reading a cache file with all checks, against reading the same bytes alone, in turn: medians.
  Json Load(int64_t tokens) {
    constexpr int kPairs = 9;
    const std::string path = FileOf(*CacheOf(tokens, 0));
    LoadFile(path);
    std::vector<double> ours, plain;
    for (int i = 0; i < kPairs; ++i) {
      ours.push_back(Seconds([&] { LoadFile(path); }));
      plain.push_back(Seconds([&] { Read(path); }));
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
  std::vector<PackedMatrix> sweep_;
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

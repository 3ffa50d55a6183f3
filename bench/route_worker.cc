// Routes questions in a collection as large as asked for, for `./dev bench`: one JSON object per
// line in, one out, as engine_worker.cc. Words are drawn by Zipf's law from a hundred thousand,
// each as often as 1 over its rank, and none is left out as a function word would be; a question is
// ten words that stand in one document.
//   {"measure": "route", "documents": N, "words": N, "questions": N}
//   {"measure": "peak"}
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "adapter_store/adapter_store.h"
#include "bench/worker_lines.h"

namespace docmem::bench {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr size_t kVocabulary = 100'000;
constexpr size_t kQuestionWords = 10;
// Documents that go to a collection without an index too, to compare.
constexpr size_t kCompared = 200;

template <class T>
T Require(absl::StatusOr<T> result) {
  if (!result.ok()) throw std::runtime_error(result.status().ToString());
  return *std::move(result);
}

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values.at(static_cast<size_t>(q * static_cast<double>(values.size() - 1)));
}

class Texts {
 public:
  Texts() {
    std::vector<double> weights(kVocabulary);
    for (size_t rank = 0; rank < weights.size(); ++rank) weights[rank] = 1.0 / (1.0 + rank);
    rank_ = std::discrete_distribution<size_t>(weights.begin(), weights.end());
  }

  size_t Below(size_t end) { return random_() % end; }
  std::vector<size_t> Draw(size_t words) {
    std::vector<size_t> ranks(words);
    for (size_t& rank : ranks) rank = rank_(random_);
    return ranks;
  }

 private:
  std::mt19937_64 random_{1};
  std::discrete_distribution<size_t> rank_;
};

std::string Written(const std::vector<size_t>& ranks) {
  std::string text;
  for (const size_t rank : ranks) absl::StrAppend(&text, "w", rank, " ");
  return text;
}

// A store in a folder of its own with a collection of each kind.
class Store {
 public:
  Store() {
    std::string pattern = (std::filesystem::temp_directory_path() / "route_XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no folder " + pattern);
    folder_ = pattern;
    store_ = Require(store::AdapterStore::Open({.folder = folder_}));
    for (const bool index : {true, false}) {
      Require(
          store_->CreateCollection(NameOf(index), {.retain_text = false, .lexical_index = index}));
    }
  }
  ~Store() {
    store_.reset();
    std::filesystem::remove_all(folder_);
  }
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// Seconds of the publication, most of them one transaction.
  double Add(bool index, const std::string& id, const std::string& text) {
    store::DocumentPublication publication;
    publication.key = {NameOf(index), id};
    publication.spec.text_sha256 = std::string(64, '0');
    publication.text = text;
    publication.retain_text = false;
    publication.row = Require(store_->BeginDocument(publication.key, publication.spec, 0)).row;
    const auto start = Clock::now();
    Require(store_->PublishDocument(publication));
    return SecondsSince(start);
  }

  /// Seconds, and whether `id` is the best.
  std::pair<double, bool> Route(const std::string& question, const std::string& id) {
    const auto start = Clock::now();
    const store::RouteResult result = Require(store_->Route(NameOf(true), question, 5));
    const double seconds = SecondsSince(start);
    return {seconds, !result.documents.empty() && result.documents.front().key.id == id};
  }

  uint64_t Bytes() const { return std::filesystem::file_size(folder_ + "/registry.db"); }

 private:
  static std::string NameOf(bool index) { return index ? "indexed" : "plain"; }

  std::string folder_;
  std::unique_ptr<store::AdapterStore> store_;
};

Json Route(size_t documents, size_t words, size_t questions) {
  Texts texts;
  Store store;
  std::vector<std::vector<size_t>> held;
  std::vector<double> indexed, plain;
  for (size_t number = 0; number < documents; ++number) {
    held.push_back(texts.Draw(words));
    const std::string text = Written(held.back());
    const double seconds = store.Add(true, absl::StrCat(number), text);
    if (number + kCompared < documents) continue;
    indexed.push_back(seconds);
    plain.push_back(store.Add(false, absl::StrCat(number), text));
  }
  std::vector<double> seconds;
  double first = 0;
  for (size_t asked = 0; asked < questions; ++asked) {
    const size_t number = texts.Below(documents);
    std::vector<size_t> ranks(kQuestionWords);
    for (size_t& rank : ranks) rank = held[number].at(texts.Below(words));
    const auto [took, found] = store.Route(Written(ranks), absl::StrCat(number));
    seconds.push_back(took);
    first += found ? 1 : 0;
  }
  return {{"median_seconds", Quantile(seconds, 0.5)},
          {"p95_seconds", Quantile(seconds, 0.95)},
          {"longest_seconds", Quantile(seconds, 1)},
          {"found_first", first / static_cast<double>(questions)},
          {"publish_seconds", Quantile(indexed, 0.5)},
          {"plain_publish_seconds", Quantile(plain, 0.5)},
          {"bytes_per_document", store.Bytes() / documents}};
}

}  // namespace
}  // namespace docmem::bench

int main() {
  docmem::bench::ServeLines([](const docmem::bench::Json& request) {
    if (request.at("measure") == "peak") {
      return docmem::bench::Json{{"bytes", docmem::bench::PeakBytes()}};
    }
    return docmem::bench::Route(request.at("documents"), request.at("words"),
                                request.at("questions"));
  });
  return 0;
}

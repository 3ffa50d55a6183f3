// How well and how fast a question finds its document among others, on the data sets of FOLDER
// (docs/evaluation.md): Markdown tables of quality, of abstention, and of time at DOCUMENTS texts
// of 1,000 words, which are stretches of the data sets' texts.
//   route_figures FOLDER [DOCUMENTS]

#include <stdlib.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "adapter_store/adapter_store.h"
#include "nlohmann/json.hpp"

namespace docmem::store {
namespace {

struct Document {
  std::string title, text;
  std::vector<std::string> questions;
};
using Documents = std::vector<Document>;

template <class T>
T Require(absl::StatusOr<T> result) {
  if (result.ok()) return *std::move(result);
  std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
  std::exit(1);
}

Documents Load(const std::string& folder, const std::string& name) {
  Documents documents;
  std::ifstream file(folder + "/" + name + ".jsonl");
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line);
    Document document{json.at("title"), json.at("text"), {}};
    for (const auto& qa : json.at("qas")) document.questions.push_back(qa.at("question"));
    documents.push_back(std::move(document));
  }
  return documents;
}

// A store in a folder of its own; document i has the id "i".
class Store {
 public:
  Store() {
    std::string pattern = (std::filesystem::temp_directory_path() / "route_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    store_ = Require(AdapterStore::Open({.folder = folder_}));
    Require(store_->CreateCollection("c", {.retain_text = false, .lexical_index = true}));
  }
  ~Store() {
    store_.reset();
    std::filesystem::remove_all(folder_);
  }
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  void Add(size_t number, const std::string& title, const std::string& text) {
    DocumentPublication publication;
    publication.key = {"c", absl::StrCat(number)};
    publication.spec.title = title;
    publication.spec.text_sha256 = std::string(64, '0');
    publication.text = text;
    publication.retain_text = false;
    publication.row = Require(store_->BeginDocument(publication.key, publication.spec, 0)).row;
    Require(store_->PublishDocument(publication));
  }
  RouteResult Route(const std::string& question) {
    return Require(store_->Route("c", question, 5));
  }
  uint64_t RegistryBytes() const {
    return std::filesystem::file_size(folder_ + "/registry.db") +
           std::filesystem::file_size(folder_ + "/registry.db-wal");
  }

 private:
  std::string folder_;
  std::unique_ptr<AdapterStore> store_;
};

void PrintQuality(const std::string& name, const Documents& documents) {
  Store store;
  for (size_t i = 0; i < documents.size(); ++i) {
    store.Add(i, documents[i].title, documents[i].text);
  }
  double first = 0, among_five = 0, all = 0;
  for (size_t i = 0; i < documents.size(); ++i) {
    for (const std::string& question : documents[i].questions) {
      const RouteResult result = store.Route(question);
      for (const RankedDocument& ranked : result.documents) {
        if (ranked.key.id != absl::StrCat(i)) continue;
        ++among_five;
        first += &ranked == &result.documents.front() ? 1 : 0;
      }
      ++all;
    }
  }
  std::printf("| %s | %zu | %.0f | %.3f | %.3f |\n", name.c_str(), documents.size(), all,
              first / all, among_five / all);
}

// Scores of the nearest document: own questions and foreign ones.
struct Nearest {
  std::string name;
  std::vector<double> own, foreign;
};

std::vector<double> NearestScores(Store& store, std::vector<std::string> questions, size_t most) {
  std::mt19937 random(1);
  std::shuffle(questions.begin(), questions.end(), random);
  questions.resize(std::min(questions.size(), most));
  std::vector<double> scores;
  for (const std::string& question : questions) {
    const RouteResult result = store.Route(question);
    scores.push_back(result.documents.empty() ? 0 : result.documents.front().score);
  }
  return scores;
}

Nearest Measure(const std::string& name, const Documents& held, const Documents& foreign) {
  Store store;
  std::vector<std::string> own_questions, foreign_questions;
  for (size_t i = 0; i < held.size(); ++i) {
    store.Add(i, held[i].title, held[i].text);
    own_questions.insert(own_questions.end(), held[i].questions.begin(), held[i].questions.end());
  }
  for (const Document& document : foreign) {
    foreign_questions.insert(foreign_questions.end(), document.questions.begin(),
                             document.questions.end());
  }
  const size_t most = std::min(own_questions.size(), foreign_questions.size());
  return {name, NearestScores(store, own_questions, most),
          NearestScores(store, foreign_questions, most)};
}

Documents EverySecond(const Documents& documents, size_t from) {
  Documents half;
  for (size_t i = from; i < documents.size(); i += 2) half.push_back(documents[i]);
  return half;
}

// Share of every second score, from `from` on, below `threshold`.
double ShareBelow(const std::vector<double>& scores, size_t from, double threshold) {
  double below = 0, all = 0;
  for (size_t i = from; i < scores.size(); i += 2, ++all) below += scores[i] < threshold ? 1 : 0;
  return below / all;
}

void PrintAbstention(const std::vector<Nearest>& collections) {
  double chosen = 0;
  for (double threshold = 0; threshold < 1; threshold += 0.001) {
    double own = 0;
    for (const Nearest& one : collections) own += ShareBelow(one.own, 0, threshold);
    if (own / static_cast<double>(collections.size()) <= 0.05) chosen = threshold;
  }
  std::printf("\nThreshold %.3f, chosen on one half of the questions; on the other:\n\n", chosen);
  std::printf("| collection | foreign abstained | own abstained |\n| --- | --- | --- |\n");
  double own = 0, foreign = 0;
  for (const Nearest& one : collections) {
    own += ShareBelow(one.own, 1, chosen);
    foreign += ShareBelow(one.foreign, 1, chosen);
    std::printf("| %s | %.3f | %.3f |\n", one.name.c_str(), ShareBelow(one.foreign, 1, chosen),
                ShareBelow(one.own, 1, chosen));
  }
  const auto count = static_cast<double>(collections.size());
  std::printf("| mean | %.3f | %.3f |\n\n", foreign / count, own / count);
}

void PrintTime(const std::vector<Documents>& sets, size_t count) {
  std::vector<std::string> words, questions;
  for (const Documents& set : sets) {
    for (const Document& document : set) {
      const std::vector<std::string> split = absl::StrSplit(document.text, ' ', absl::SkipEmpty());
      words.insert(words.end(), split.begin(), split.end());
      questions.insert(questions.end(), document.questions.begin(), document.questions.end());
    }
  }
  constexpr size_t kWords = 1000, kQuestions = 1000;
  std::mt19937_64 random(2);
  Store store;
  const absl::Time start = absl::Now();
  for (size_t i = 0; i < count; ++i) {
    const auto begin = words.begin() + static_cast<ptrdiff_t>(random() % (words.size() - kWords));
    store.Add(i, "", absl::StrJoin(begin, begin + kWords, " "));
  }
  const double add_ms = absl::ToDoubleMilliseconds(absl::Now() - start);
  std::vector<double> ms;
  for (size_t i = 0; i < kQuestions; ++i) {
    const absl::Time asked = absl::Now();
    store.Route(questions[random() % questions.size()]);
    ms.push_back(absl::ToDoubleMilliseconds(absl::Now() - asked));
  }
  std::sort(ms.begin(), ms.end());
  const auto documents = static_cast<double>(count);
  std::printf(
      "%zu documents: %.1f ms to add one, %.1f kB of registry each; a question takes "
      "%.1f ms (median), %.1f ms (95 %%), %.1f ms (longest)\n",
      count, add_ms / documents, static_cast<double>(store.RegistryBytes()) / documents / 1e3,
      ms[kQuestions / 2], ms[kQuestions * 95 / 100], ms.back());
}

void Run(const std::string& folder, size_t count) {
  const Documents xquad = Load(folder, "xquad_en");
  const Documents summaries = Load(folder, "narrativeqa_small");
  const Documents stories = Load(folder, "narrativeqa_stories");
  const Documents few_tales = Load(folder, "fairytaleqa_small");
  const Documents tales = Load(folder, "fairytaleqa_valtest");
  std::printf("| set | documents | questions | top-1 | top-5 |\n| --- | --- | --- | --- | --- |\n");
  PrintQuality("xquad_en", xquad);
  PrintQuality("narrativeqa_small", summaries);
  PrintQuality("narrativeqa_stories", stories);
  PrintQuality("fairytaleqa_small", few_tales);
  PrintQuality("fairytaleqa_valtest", tales);
  const auto halves = [](const std::string& name, const Documents& set) {
    return Measure("half of " + name, EverySecond(set, 0), EverySecond(set, 1));
  };
  PrintAbstention({halves("xquad_en", xquad), halves("narrativeqa_small", summaries),
                   halves("narrativeqa_stories", stories), halves("fairytaleqa_valtest", tales),
                   Measure("xquad_en, asked about tales", xquad, tales),
                   Measure("tales, asked about xquad_en", tales, xquad),
                   Measure("stories, asked about xquad_en", stories, xquad),
                   Measure("summaries, asked about tales", summaries, tales),
                   Measure("tales, asked about summaries", tales, summaries)});
  PrintTime({xquad, summaries, stories, tales}, count);
}

}  // namespace
}  // namespace docmem::store

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: route_figures FOLDER [DOCUMENTS]\n");
    return 2;
  }
  docmem::store::Run(argv[1], argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 10000);
}

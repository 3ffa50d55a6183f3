// How well a question finds its document among others, and how well the questions of others are
// told from its own, on the data sets of FOLDER: the tables of docs/evaluation.md. Documents are
// split in halves by a hash of their ids: the tables are of the second half's questions. With
// `choose`, the constants of lexical/ranking.h are first chosen anew, on the first half's.
//   route_figures FOLDER [choose]

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "adapter_store/files/digest.h"
#include "adapter_store/lexical/ranking.h"
#include "adapter_store/lexical/word_counts.h"
#include "nlohmann/json.hpp"

namespace docmem::store {
namespace {

using Terms = std::vector<int64_t>;

struct Document {
  uint64_t hash = 0;  // of its id
  TextWords text;
  std::map<int64_t, uint32_t> title;
  std::vector<Terms> questions;
};
struct DataSet {
  std::string name;
  std::vector<Document> documents;
};
using Chosen = absl::FunctionRef<bool(const Document&)>;

int HalfOf(const Document& document) { return static_cast<int>(document.hash % 2); }
// Of each half, those whose questions are asked where the document isn't.
bool IsForeign(const Document& document) { return document.hash / 2 % 2 == 1; }

DataSet Load(const std::string& folder, const std::string& name) {
  DataSet set{name, {}};
  std::ifstream file(folder + "/" + name + ".jsonl");
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line);
    Document document;
    document.hash = Xxh3Of(json.at("id").get<std::string>());
    document.text = CountText(json.at("text").get<std::string>());
    document.title = CountTitle(json.at("title").get<std::string>());
    for (const auto& qa : json.at("qas")) {
      document.questions.push_back(TermsOf(qa.at("question").get<std::string>()));
    }
    set.documents.push_back(std::move(document));
  }
  return set;
}

// What the registry's tables hold of the chosen documents; a document's number is its id.
class Collection {
 public:
  Collection(const DataSet& set, Chosen chosen) {
    for (size_t number = 0; number < set.documents.size(); ++number) {
      const Document& document = set.documents[number];
      if (!chosen(document)) continue;
      words_.documents += 1;
      words_.words += document.text.words;
      words_.chunks += ChunksOf(document.text.words);
      const auto posting_of = [&](int64_t term) -> Posting& {
        std::vector<Posting>& postings = postings_[term];
        const auto id = static_cast<int64_t>(number);
        if (postings.empty() || postings.back().document != id) {
          postings.push_back({.document = id, .words = document.text.words});
        }
        return postings.back();
      };
      for (const auto& [term, packed] : document.text.in_chunks)
        posting_of(term).in_chunks = packed;
      for (const auto& [term, count] : document.title) posting_of(term).in_title = count;
    }
  }

  std::vector<ScoredDocument> Route(const Terms& question,
                                    const RankingConstants& constants) const {
    Ranking ranking(words_, constants);
    for (const int64_t term : question) {
      const auto found = postings_.find(term);
      ranking.BeginTerm(found == postings_.end() ? 0 : found->second.size());
      if (found == postings_.end()) continue;
      for (const Posting& posting : found->second) ranking.Add(posting);
    }
    return ranking.Best(5);
  }

 private:
  CollectionWords words_;
  absl::flat_hash_map<int64_t, std::vector<Posting>> postings_;
};

void EachQuestion(const DataSet& set, Chosen chosen,
                  absl::FunctionRef<void(int64_t document, const Terms&)> on_question) {
  for (size_t number = 0; number < set.documents.size(); ++number) {
    if (!chosen(set.documents[number])) continue;
    for (const Terms& question : set.documents[number].questions) {
      on_question(static_cast<int64_t>(number), question);
    }
  }
}

struct Quality {
  double questions = 0, first = 0, among_five = 0;
};

Quality Measure(const DataSet& set, const Collection& collection, int half,
                const RankingConstants& constants) {
  Quality quality;
  EachQuestion(
      set, [half](const Document& document) { return HalfOf(document) == half; },
      [&](int64_t document, const Terms& question) {
        const std::vector<ScoredDocument> best = collection.Route(question, constants);
        quality.questions += 1;
        for (const ScoredDocument& scored : best) {
          if (scored.document != document) continue;
          quality.among_five += 1;
          quality.first += &scored == &best.front() ? 1 : 0;
        }
      });
  quality.first /= quality.questions;
  quality.among_five /= quality.questions;
  return quality;
}

// Every document of a set in a collection, asked all its questions.
class Whole {
 public:
  explicit Whole(const DataSet& set)
      : set_(set), collection_(set, [](const Document&) { return true; }) {}
  Quality On(int half, const RankingConstants& constants) const {
    return Measure(set_, collection_, half, constants);
  }
  const DataSet& set() const { return set_; }

 private:
  const DataSet& set_;
  const Collection collection_;
};

RankingConstants ChooseRanking(const std::vector<Whole>& sets) {
  RankingConstants best;
  double best_mean = 0;
  for (const double k1 : {0.9, 1.2, 1.6, 2.0, 2.5, 3.0}) {
    for (const double b : {0.4, 0.5, 0.6, 0.75, 0.9}) {
      for (const double share : {0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0}) {
        const RankingConstants constants{.k1 = k1, .b = b, .chunk_share = share};
        double mean = 0;
        for (const Whole& set : sets) {
          mean += set.On(0, constants).first / static_cast<double>(sets.size());
        }
        if (mean <= best_mean) continue;
        best_mean = mean;
        best = constants;
      }
    }
  }
  std::printf(
      "Chosen on the first half (top-1 %.3f in the mean): k1 %.2f, b %.2f, chunk share %.1f\n",
      best_mean, best.k1, best.b, best.chunk_share);
  return best;
}

void PrintQuality(const std::vector<Whole>& sets, const RankingConstants& constants) {
  constexpr RankingConstants kPlain{.k1 = 1.2, .b = 0.75, .chunk_share = 0};
  std::printf("\n| set | documents | questions | top-1 of plain BM25 | top-1 | top-5 |\n");
  std::printf("| --- | --- | --- | --- | --- | --- |\n");
  for (const Whole& set : sets) {
    const Quality quality = set.On(1, constants);
    std::printf("| %s | %zu | %.0f | %.3f | %.3f | %.3f |\n", set.set().name.c_str(),
                set.set().documents.size(), quality.questions, set.On(1, kPlain).first,
                quality.first, quality.among_five);
  }
}

// Scores of the nearest document to own questions and to foreign ones.
struct Nearest {
  std::string name;
  std::array<std::vector<double>, 2> own, foreign;  // by half
};

double NearestScore(const Collection& collection, const Terms& question,
                    const RankingConstants& constants) {
  const std::vector<ScoredDocument> best = collection.Route(question, constants);
  return best.empty() ? 0 : best.front().score;
}

// Three quarters of a set, asked about the last quarter, which is of one half.
Nearest AskAboutTheRest(const DataSet& set, const RankingConstants& constants) {
  Nearest nearest{set.name + ", asked about the rest", {}, {}};
  for (const int half : {0, 1}) {
    const auto is_asked = [&](const Document& one) { return HalfOf(one) == half; };
    const Collection collection(
        set, [&](const Document& one) { return !is_asked(one) || !IsForeign(one); });
    EachQuestion(set, is_asked, [&](int64_t document, const Terms& question) {
      const bool foreign = IsForeign(set.documents[static_cast<size_t>(document)]);
      (foreign ? nearest.foreign : nearest.own)[static_cast<size_t>(half)].push_back(
          NearestScore(collection, question, constants));
    });
  }
  return nearest;
}

Nearest AskAbout(const DataSet& other, const DataSet& set, const RankingConstants& constants) {
  Nearest nearest{set.name + ", asked about " + other.name, {}, {}};
  const Collection collection(set, [](const Document&) { return true; });
  for (const size_t half : {0u, 1u}) {
    const auto is_asked = [&](const Document& one) {
      return HalfOf(one) == static_cast<int>(half);
    };
    const auto score_into = [&](std::vector<double>& scores) {
      return [&](int64_t, const Terms& question) {
        scores.push_back(NearestScore(collection, question, constants));
      };
    };
    EachQuestion(set, is_asked, score_into(nearest.own[half]));
    EachQuestion(other, is_asked, score_into(nearest.foreign[half]));
  }
  return nearest;
}

double ShareBelow(const std::vector<double>& scores, double threshold) {
  const auto below = std::count_if(scores.begin(), scores.end(),
                                   [threshold](double score) { return score < threshold; });
  return static_cast<double>(below) / static_cast<double>(scores.size());
}

double MeanBelow(const std::vector<Nearest>& all,
                 std::array<std::vector<double>, 2> Nearest::* whose, size_t half,
                 double threshold) {
  double sum = 0;
  for (const Nearest& one : all) sum += ShareBelow((one.*whose)[half], threshold);
  return sum / static_cast<double>(all.size());
}

double ChooseFits(const std::vector<Nearest>& all) {
  double chosen = 0;
  for (double threshold = 0; threshold < 1; threshold += 0.001) {
    if (MeanBelow(all, &Nearest::own, 0, threshold) <= 0.05) chosen = threshold;
  }
  std::printf("\nChosen on the first half: fits from %.3f\n", chosen);
  return chosen;
}

void PrintAbstention(const std::vector<Nearest>& all, double fits) {
  std::printf("\n| collection | foreign abstained | own abstained |\n| --- | --- | --- |\n");
  for (const Nearest& one : all) {
    std::printf("| %s | %.3f | %.3f |\n", one.name.c_str(), ShareBelow(one.foreign[1], fits),
                ShareBelow(one.own[1], fits));
  }
  std::printf("| mean | %.3f | %.3f |\n", MeanBelow(all, &Nearest::foreign, 1, fits),
              MeanBelow(all, &Nearest::own, 1, fits));
}

void Run(const std::string& folder, bool choose) {
  const DataSet xquad = Load(folder, "xquad_en");
  const DataSet summaries = Load(folder, "narrativeqa_small");
  const DataSet stories = Load(folder, "narrativeqa_stories");
  const DataSet tales = Load(folder, "fairytaleqa_valtest");
  const std::vector<Whole> sets = {Whole(xquad), Whole(summaries), Whole(stories), Whole(tales)};
  RankingConstants constants;
  if (choose) constants = ChooseRanking(sets);
  const std::vector<Nearest> nearest = {
      AskAboutTheRest(xquad, constants),    AskAboutTheRest(summaries, constants),
      AskAboutTheRest(stories, constants),  AskAboutTheRest(tales, constants),
      AskAbout(tales, xquad, constants),    AskAbout(xquad, tales, constants),
      AskAbout(xquad, stories, constants),  AskAbout(tales, summaries, constants),
      AskAbout(summaries, tales, constants)};
  if (choose) constants.fits = ChooseFits(nearest);
  PrintQuality(sets, constants);
  PrintAbstention(nearest, constants.fits);
}

}  // namespace
}  // namespace docmem::store

int main(int argc, char** argv) {
  const bool choose = argc == 3 && std::string(argv[2]) == "choose";
  if (argc != 2 && !choose) {
    std::fprintf(stderr, "usage: route_figures FOLDER [choose]\n");
    return 2;
  }
  docmem::store::Run(argv[1], choose);
}

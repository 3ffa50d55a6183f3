// Which documents a question finds. What they are worth is compared with a plain reading of the
// formula in lexical/ranking.h over the words of all texts in memory.

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "adapter_store/document_import.h"
#include "adapter_store/lexical/word_counts.h"
#include "adapter_store/registry/sqlite_registry.h"
#include "adapter_store/registry/sqlite_schema.h"
#include "adapter_store/testing/adapter_store_fixture.h"
#include "gtest/gtest.h"

namespace docmem::store {
namespace {

using store_test::AdapterStoreTest;
using store_test::Key;
using store_test::SpecOf;

struct Text {
  std::string title, text;
};
using Texts = std::map<std::string, Text>;  // by document id

std::vector<std::string> Split(const std::string& text) {
  return absl::StrSplit(text, ' ', absl::SkipEmpty());
}

double Count(const std::vector<std::string>& words, const std::string& word) {
  return static_cast<double>(std::count(words.begin(), words.end(), word));
}

double ChunksOfText(const Text& text) {
  return std::max(1.0, std::floor(static_cast<double>(Split(text.text).size()) / 64 + 0.5));
}

// The formula, sum by sum. Texts are of words that the stemmer leaves alone.
double Reference(const Texts& texts, const std::string& id, const std::string& question) {
  double all_words = 0;
  double all_chunks = 0;
  for (const auto& [other, text] : texts) {
    all_words += static_cast<double>(Split(text.text).size());
    all_chunks += ChunksOfText(text);
  }
  const auto documents = static_cast<double>(texts.size());
  const std::vector<std::string> words = Split(texts.at(id).text);
  const std::vector<std::string> title = Split(texts.at(id).title);
  const double chunks = ChunksOfText(texts.at(id));
  const auto saturated = [](double count, double relative) {
    return count / (count + 2 * (0.25 + 0.75 * relative));
  };
  double attainable = 0;
  double whole = 0;
  std::vector<double> in_chunks(static_cast<size_t>(chunks));
  std::vector<std::string> terms = Split(question);
  std::sort(terms.begin(), terms.end());
  terms.erase(std::unique(terms.begin(), terms.end()), terms.end());
  for (const std::string& term : terms) {
    double with = 0;
    for (const auto& [other, text] : texts) {
      with += Count(Split(text.text), term) + Count(Split(text.title), term) > 0 ? 1 : 0;
    }
    with = std::max(with, 1.0);
    const double idf = std::log(1 + (documents - with + 0.5) / (with + 0.5));
    attainable += idf;
    const double length = static_cast<double>(words.size());
    const double relative = all_words == 0 ? 1 : length / (all_words / documents);
    whole += idf * saturated(Count(words, term) + Count(title, term), relative);
    const double chunk_relative = all_words == 0 ? 1 : length / chunks / (all_words / all_chunks);
    for (size_t c = 0; c < in_chunks.size(); ++c) {
      double count = Count(title, term);
      for (size_t w = 0; w < words.size(); ++w) {
        if (w * in_chunks.size() / words.size() == c && words[w] == term) ++count;
      }
      in_chunks[c] += idf * saturated(count, chunk_relative);
    }
  }
  const double best = *std::max_element(in_chunks.begin(), in_chunks.end());
  return (0.4 * whole + 0.6 * best) / attainable;
}

class RouteTest : public AdapterStoreTest {
 protected:
  void SetUp() override {
    AdapterStoreTest::SetUp();
    Switch("default", true);
  }

  void Switch(const std::string& collection, bool on) {
    ASSERT_OK(store_->UpdateCollection(collection, 0, [on](CollectionSettings& settings) {
      settings.lexical_index = on;
      return absl::OkStatus();
    }));
  }

  absl::StatusOr<Document> Put(const DocumentKey& key, const Text& text, uint64_t replaces = 0,
                               bool retain_text = true) {
    DocumentSpec spec = SpecOf(text.text);
    spec.title = text.title;
    const auto begun = store_->BeginDocument(key, spec, replaces);
    if (!begun.ok()) return begun.status();
    DocumentPublication publication;
    publication.key = key;
    publication.row = begun->row;
    publication.replaces = replaces;
    publication.spec = spec;
    publication.text = text.text;
    publication.retain_text = retain_text;
    return store_->PublishDocument(publication);
  }

  // Ids, best first.
  std::vector<std::string> Found(const std::string& question,
                                 const std::string& collection = "default") {
    std::vector<std::string> ids;
    const auto result = store_->Route(collection, question, 10);
    EXPECT_OK(result);
    if (!result.ok()) return ids;
    for (const RankedDocument& document : result->documents) ids.push_back(document.key.id);
    return ids;
  }

  void ExpectAsReference(const std::string& collection, const Texts& texts,
                         const std::string& question) {
    const auto result = store_->Route(collection, question, 1000);
    ASSERT_OK(result);
    std::map<std::string, double> scores;
    double before = 1;
    for (const RankedDocument& document : result->documents) {
      EXPECT_LE(document.score, before);
      before = document.score;
      ASSERT_TRUE(texts.contains(document.key.id)) << document.key.id;
      EXPECT_EQ(document.title, texts.at(document.key.id).title);
      scores[document.key.id] = document.score;
    }
    for (const auto& [id, text] : texts) {
      EXPECT_NEAR(scores[id], Reference(texts, id, question), 1e-6) << id << " for " << question;
    }
  }

  // All bytes of the closed database.
  std::string Database() {
    store_.reset();
    std::ifstream file(folder_.path() + "/registry.db", std::ios::binary);
    std::stringstream bytes;
    bytes << file.rdbuf();
    return bytes.str();
  }

  // As SQLite stores a number.
  static std::string BytesOf(int64_t term) {
    std::string bytes;
    for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(term >> shift);
    return bytes;
  }
};

class RandomTexts {
 public:
  explicit RandomTexts(uint32_t seed) : random_(seed) {}
  uint32_t Below(uint32_t end) { return static_cast<uint32_t>(random_() % end); }
  std::string Words(uint32_t most) {
    std::vector<std::string> words(Below(most + 1));
    // Some are frequent, some rare.
    for (std::string& word : words) word = "w" + std::to_string(Below(Below(60) + 1));
    return absl::StrJoin(words, " ");
  }
  Text Next() { return {Words(4), Words(Below(4) == 0 ? 700 : 120)}; }

 private:
  std::minstd_rand random_;
};

TEST_F(RouteTest, ScoresAreThoseOfTheFormulaWhateverHappenedBefore) {
  RandomTexts random(7);
  std::map<std::string, Texts> held = {{"default", {}}, {"other", {}}};
  ASSERT_OK(store_->CreateCollection("other", {.lexical_index = true}));
  for (int step = 1; step <= 400; ++step) {
    const std::string collection = random.Below(2) == 0 ? "default" : "other";
    Texts& texts = held[collection];
    const DocumentKey key{collection, "d" + std::to_string(random.Below(25))};
    const auto old = store_->GetDocument(key);
    const uint32_t action = random.Below(4);
    if (!old.ok() || action == 0) {
      Text text = random.Next();
      if (old.ok() && text.text == texts[key.id].text) continue;
      ASSERT_OK(Put(key, text, old.ok() ? old->revision : 0, random.Below(2) == 0));
      texts[key.id] = text;
    } else if (action == 1) {
      ASSERT_OK(store_->DeleteDocument(key, 0));
      texts.erase(key.id);
    } else if (action == 2) {
      DocumentEdit edit;
      edit.title = texts[key.id].title = random.Words(4);
      ASSERT_OK(store_->UpdateDocument(key, 0, edit));
    }
    if (step % 100 == 0) Open();
    if (step % 20 != 0 || texts.empty()) continue;
    std::string question = random.Words(8);
    if (question.empty()) question = "w1";
    ExpectAsReference(collection, texts, question + (step % 40 == 0 ? " unknown" : ""));
  }
}

TEST_F(RouteTest, AbstainsWhereNothingFits) {
  ASSERT_OK(Put(Key("fox"), {"Tales", "The fox stole a hen from the farmer's yard at night."}));
  ASSERT_OK(Put(Key("bread"), {"Baking", "Knead the dough, let it rest, bake it until brown."}));
  const auto own = store_->Route("default", "Who stole the farmer's hen?", 1);
  ASSERT_OK(own);
  EXPECT_FALSE(own->abstained);
  ASSERT_EQ(own->documents.size(), 1u);
  EXPECT_EQ(own->documents[0].key, Key("fox"));
  EXPECT_GT(own->documents[0].best_chunk_score, 0);
  const auto foreign = store_->Route("default", "Which treaty ended the war at night?", 5);
  ASSERT_OK(foreign);
  EXPECT_TRUE(foreign->abstained);
  EXPECT_EQ(foreign->documents.size(), 1u) << "the nearest is shown";
  EXPECT_TRUE(store_->Route("default", "Who is it?", 5)->abstained) << "only function words";
}

TEST_F(RouteTest, CollectionWithoutIndexOrAtAllIsAnError) {
  ASSERT_OK(store_->CreateCollection("plain", {}));
  const auto off = store_->Route("plain", "fox", 5);
  EXPECT_TRUE(absl::IsFailedPrecondition(off.status()));
  EXPECT_EQ(ReasonOf(off.status()), reason::kLexicalIndexOff);
  EXPECT_TRUE(absl::IsNotFound(store_->Route("absent", "fox", 5).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store_->Route("../x", "fox", 5).status()));
}

TEST_F(RouteTest, DeletedDocumentsWordsLeaveNoTraceInTheFile) {
  if (!IsSqlite()) GTEST_SKIP() << "it looks into SQLite's file";
  const int64_t rare = TermsOf("xylocopa").at(0);
  ASSERT_OK(Put(Key("bee"), {"", "The bee Xylocopa."}, 0, false));
  const std::string before = Database();
  EXPECT_NE(before.find(BytesOf(rare)), std::string::npos) << "the test looks for the wrong bytes";
  EXPECT_EQ(before.find("ylocopa"), std::string::npos) << "the text isn't retained";
  Open();
  ASSERT_OK(store_->DeleteDocument(Key("bee"), 0));
  EXPECT_EQ(Database().find(BytesOf(rare)), std::string::npos);
}

TEST_F(RouteTest, ForcedDeletionOfACollectionTakesItsWordsAlong) {
  if (!IsSqlite()) GTEST_SKIP() << "it looks into SQLite's file";
  ASSERT_OK(store_->CreateCollection("bees", {.lexical_index = true}));
  ASSERT_OK(Put({"bees", "a"}, {"", "xylocopa"}));
  ASSERT_OK(store_->DeleteCollection("bees", true));
  EXPECT_EQ(Database().find(BytesOf(TermsOf("xylocopa").at(0))), std::string::npos);
}

TEST_F(RouteTest, SwitchingTheIndexOnCountsRetainedTextsAndOffDropsAll) {
  if (!IsSqlite()) GTEST_SKIP() << "it looks into SQLite's file";
  Switch("default", false);
  ASSERT_OK(Put(Key("kept"), {"", "fox hen"}));
  ASSERT_OK(Put(Key("dropped"), {"", "fox owl"}, 0, false));
  Switch("default", true);
  EXPECT_EQ(Found("fox"), std::vector<std::string>{"kept"});
  ASSERT_OK(Put(Key("later"), {"", "fox"}, 0, false));
  EXPECT_EQ(Found("fox").size(), 2u);
  Switch("default", false);
  EXPECT_EQ(Database().find(BytesOf(TermsOf("fox").at(0))), std::string::npos);
}

TEST_F(RouteTest, IndexThatWasCutShortIsCompletedAtTheNextStart) {
  ASSERT_OK(Put(Key("a"), {"", "fox"}));
  ASSERT_OK(Put(Key("b"), {"", "fox"}));
  store_.reset();
  Sql("DELETE FROM word_postings WHERE document_id = 2;"
      "DELETE FROM word_documents WHERE document_id = 2");
  Open();
  EXPECT_EQ(Found("fox").size(), 2u);
}

TEST_F(RouteTest, DamagedTextDoesNotKeepTheOthersOutOfTheIndex) {
  Switch("default", false);
  const auto damaged = Put(Key("a"), {"", "fox"});
  ASSERT_OK(damaged);
  ASSERT_OK(Put(Key("b"), {"", "fox"}));
  FlipByte(*damaged->text);
  Switch("default", true);
  EXPECT_EQ(Found("fox"), std::vector<std::string>{"b"});
}

TEST_F(RouteTest, FolderOfTheVersionBeforeIsMigratedAndItsTextsCanBeIndexed) {
  if (!IsSqlite()) GTEST_SKIP() << "PostgreSQL knows no older version";
  store_.reset();
  std::filesystem::remove(folder_.path() + "/registry.db");
  auto old = Options();
  auto registry =
      OpenSqliteRegistryWith(folder_.path() + "/registry.db", SqliteMigrations().first(3));
  ASSERT_OK(registry);
  old.registry = *std::move(registry);
  auto opened = AdapterStore::Open(std::move(old));
  ASSERT_OK(opened);
  store_ = *std::move(opened);
  for (const char* id : {"a", "b"}) {
    ASSERT_OK(store_test::Ingest(*store_, Key(id), std::string("fox ") + id, 1));
  }
  Open();
  EXPECT_TRUE(absl::IsFailedPrecondition(store_->Route("default", "fox", 5).status()));
  Switch("default", true);
  EXPECT_EQ(Found("fox"), (std::vector<std::string>{"a", "b"}));
}

TEST_F(RouteTest, ImportedTextIsFoundAndReplacesTheOldOne) {
  ASSERT_OK(Put(Key("a"), {"", "fox"}));
  auto import = store_->BeginImport(Key("a"), store_->GetDocument(Key("a"))->revision);
  ASSERT_OK(import);
  ASSERT_OK((*import)->AddText("owl"));
  ImportedDocument document;
  document.spec = SpecOf("owl");
  document.spec.title = "Night";
  ASSERT_OK((*import)->Publish(document));
  EXPECT_TRUE(Found("fox").empty());
  EXPECT_EQ(Found("owl"), std::vector<std::string>{"a"});
  EXPECT_EQ(Found("night"), std::vector<std::string>{"a"});
}

TEST_F(RouteTest, DocumentThatIsBuiltOrQuarantinedIsNotFound) {
  ASSERT_OK(store_->BeginDocument(Key("building"), SpecOf("fox"), 0));
  ASSERT_OK(Put(Key("damaged"), {"", "fox"}));
  ASSERT_OK(Put(Key("ready"), {"", "fox and hen"}));
  store_.reset();
  Sql("UPDATE documents SET title = 'x' WHERE name = 'damaged'");
  Open();
  EXPECT_EQ(Found("fox"), std::vector<std::string>{"ready"});
}

TEST_F(RouteTest, WordsThatTooManyDocumentsHaveAreLeftOut) {
  ASSERT_OK(Put(Key("a"), {"", "common rare"}));
  ASSERT_OK(Put(Key("b"), {"", "common"}));
  store_.reset();
  Sql(absl::StrCat(
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
      "INSERT INTO word_postings SELECT 1, ",
      TermsOf("common").at(0), ", i + 1000, 2, 0, '01' FROM n"));
  Open();
  EXPECT_EQ(Found("common rare"), std::vector<std::string>{"a"});
  EXPECT_TRUE(store_->Route("default", "common", 5)->documents.empty());
}

TEST_F(RouteTest, HostileTextsAreFoundLikeOthers) {
  const Text hostile[] = {
      {"", std::string("\x01\x02\x1B[2J fox \xFF\xFE") + std::string(1, '\0') + " fox"},
      {"\n\t ", std::string(1 << 20, 'q') + " fox"},
      {"'; DROP TABLE documents; --", "fox $1 %s"},
      {"\u6771\u4EAC",
       "\u0939\u093F\u0928\u094D\u0926\u0940 \u05E9\u05DC\u05D5\u05DD "
       "\u0645\u0631\u062D\u0628\u0627 \u0E2A\u0E27\u0E31\u0E2A "
       "\uD55C\uAD6D\uC5B4 \u041C\u043E\u0441\u043A\u0432\u0430 fox \U0001F98A"},
      {"fox", ""}};
  int number = 0;
  for (const Text& text : hostile) ASSERT_OK(Put(Key(std::to_string(number++)), text));
  EXPECT_EQ(Found("fox").size(), 5u);
  EXPECT_EQ(Found(std::string(1 << 20, 'q')), std::vector<std::string>{"1"});
  for (const char* word :
       {"\u6771\u4EAC", "\uD55C\uAD6D\uC5B4", "\u043C\u043E\u0441\u043A\u0432\u0430",
        "\u0E2A\u0E27", "\u0645\u0631\u062D\u0628\u0627"}) {
    EXPECT_EQ(Found(word), std::vector<std::string>{"3"}) << word;
  }
  EXPECT_TRUE(Found(std::string("\xFF\0\x01", 3)).empty());
}

}  // namespace
}  // namespace docmem::store

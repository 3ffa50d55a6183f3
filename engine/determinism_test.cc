// The same document, options and instruction path give the same cache file, byte for byte, whatever
// the number of threads and whatever runs between the units of work.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <functional>

#include "engine/model/testing.h"
#include "engine/testing.h"

namespace docmem::engine {
namespace {

std::string Document(int lines) {
  std::string document;
  for (int i = 0; i < lines; ++i) {
    document += "Entry " + std::to_string(i * 37 % 1000) + " of the log: nothing of note, wind " +
                std::to_string(i * 13 % 17) + ".\n";
  }
  return document;
}

class DeterminismTest : public ::testing::Test {
 protected:
  ~DeterminismTest() override { at::set_num_threads(1); }

  static std::string CacheFile(
      const Engine& engine, const std::string& document, int threads,
      const std::function<void()>& between = [] {}) {
    at::set_num_threads(threads);
    const auto ingestion =
        engine.StartIngestion(engine.EncodeContext("", document, 64), {{.ratio_ppm = 700'000}});
    while (!ingestion->Step()) between();
    std::string file;
    WriteCacheFile(*ingestion->TakeCaches().front(), [&file](std::span<const std::byte> bytes) {
      file.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    });
    return file;
  }
};

TEST_F(DeterminismTest, AnyNumberOfThreadsWritesTheSameBytes) {
  for (const char* dtype : {"float32", "bfloat16"}) {
    const auto engine = testing::TinyEngine("tiny-llama", dtype);
    const std::string document = Document(60);
    const auto one = CacheFile(*engine, document, 1);
    EXPECT_TRUE(one == CacheFile(*engine, document, 2)) << dtype;
    EXPECT_TRUE(one == CacheFile(*engine, document, 3)) << dtype;
  }
}

TEST_F(DeterminismTest, QueriesBetweenTheUnitsOfWorkChangeNothing) {
  const auto engine = testing::TinyEngine("tiny-llama", "bfloat16");
  const std::string document = Document(60);
  const auto idle = CacheFile(*engine, document, 2);
  const auto cache = testing::Ingest(*engine, engine->EncodeContext("", Document(3), 64), {});
  Session session(engine);
  const auto busy = CacheFile(*engine, document, 2, [&] {
    if (session.running() == 0) {
      session.Add({.cache = cache,
                   .prompt_ids = engine->prompt_format().QuestionIds({}, "", "What wind?"),
                   .max_tokens = 30});
    }
    session.Step();
  });
  EXPECT_TRUE(idle == busy);
}

TEST_F(DeterminismTest, SmolLm2WritesTheSameBytesWithOneThreadAndWithTwo) {
  const auto folder = testing::SmolLm2();
  if (!folder) GTEST_SKIP() << testing::kNoSmolLm2;
  for (const char* dtype : {"float32", "bfloat16"}) {
    const auto engine = Engine::Load({.model_dir = *folder, .dtype = dtype});
    const std::string document = Document(45);
    EXPECT_TRUE(CacheFile(*engine, document, 1) == CacheFile(*engine, document, 2)) << dtype;
  }
}

}  // namespace
}  // namespace docmem::engine

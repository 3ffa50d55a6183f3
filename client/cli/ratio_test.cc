#include "client/cli/ratio.h"

#include <gtest/gtest.h>

namespace docmem::cli {
namespace {

TEST(Ratio, DecimalsBecomeMillionthsExactly) {
  const std::pair<const char*, uint32_t> cases[] = {
      {"0", 0},           {"1", 1'000'000},        {"0.9", 900'000}, {".5", 500'000},
      {"1.", 1'000'000},  {"0.95", 950'000},       {"0.000001", 1},  {"0.999999", 999'999},
      {"00.25", 250'000}, {"1.000000", 1'000'000}, {"0.1", 100'000}, {"0.29", 290'000}};
  for (const auto& [text, ppm] : cases) {
    const absl::StatusOr<uint32_t> parsed = ParseRatio(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(*parsed, ppm) << text;
  }
}

TEST(Ratio, NothingIsRoundedAndNothingElseIsTaken) {
  for (const char* text : {"", ".", "-0.1", "+0.1", "1.000001", "2", "0.0000001", "0.9000000",
                           "0,9", "90%", "9e-1", "nan", " 0.9", "0.9 ", "0.9.1", "99999999999"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseRatio(text).status())) << text;
  }
}

TEST(Ratio, EveryMillionthIsWrittenAsItIsRead) {
  for (uint32_t ppm = 0; ppm <= 1'000'000; ppm += ppm < 2000 ? 1 : 997) {
    EXPECT_EQ(*ParseRatio(FormatRatio(ppm)), ppm);
  }
  EXPECT_EQ(FormatRatio(0), "0");
  EXPECT_EQ(FormatRatio(1'000'000), "1");
  EXPECT_EQ(FormatRatio(950'000), "0.95");
}

TEST(Ratio, AListIsCommaSeparated) {
  std::vector<uint32_t> ppm;
  EXPECT_TRUE(Ratios(&ppm).assign("0,0.9,1").ok());
  EXPECT_EQ(ppm, (std::vector<uint32_t>{0, 900'000, 1'000'000}));
  EXPECT_FALSE(Ratios(&ppm).assign("0.9,").ok());
}

}  // namespace
}  // namespace docmem::cli

#include "adapter_store/registry/row_codec.h"

#include <vector>

#include "gtest/gtest.h"

namespace docmem::store {
namespace {

TEST(RowCodecTest, EveryChangedColumnIsDamage) {
  const std::vector<SqlValue> written =
      RowWriter().Add(7).AddText("text").AddReference(0).AddReference(5).Finish();
  SqlRow row = {SqlValue(int64_t{1})};
  row.insert(row.end(), written.begin(), written.end());
  EXPECT_FALSE(RowReader(row).damaged());
  for (size_t i = 1; i < row.size(); ++i) {
    SqlRow damaged = row;
    damaged[i] = SqlValue(int64_t{8});
    EXPECT_TRUE(RowReader(damaged).damaged()) << i;
    damaged[i] = SqlValue("8");
    EXPECT_TRUE(RowReader(damaged).damaged()) << i;
    damaged[i] = i == 3 ? SqlValue("") : SqlValue();
    EXPECT_TRUE(RowReader(damaged).damaged()) << i;
  }
}

TEST(RowCodecTest, ColumnsAppendedAsNullKeepTheChecksumAndAnyValueInThemIsGuarded) {
  const std::vector<SqlValue> old = RowWriter().Add(7).Finish();
  const std::vector<SqlValue> empty =
      RowWriter().Add(7).AddReference(0).AddReference(0).AddOptionalText("").Finish();
  const std::vector<SqlValue> set = RowWriter().Add(7).AddReference(0).AddReference(5).Finish();
  EXPECT_EQ(old.back(), empty.back());
  EXPECT_NE(set.back(), empty.back());
  SqlRow row = {SqlValue(int64_t{1})};
  row.insert(row.end(), set.begin(), set.end());
  EXPECT_FALSE(RowReader(row).damaged());
  std::swap(row[2], row[3]);
  EXPECT_TRUE(RowReader(row).damaged());
}

TEST(RowCodecTest, AnOptionalTextIsReadAsItWasWritten) {
  for (const char* text : {"", "Answer in rhyme."}) {
    const std::vector<SqlValue> written = RowWriter().AddOptionalText(text).Finish();
    SqlRow row = {SqlValue(int64_t{1})};
    row.insert(row.end(), written.begin(), written.end());
    RowReader reader(row);
    reader.Int();
    EXPECT_EQ(reader.OptionalText(), text);
    EXPECT_FALSE(reader.damaged());
  }
}

TEST(RowCodecTest, ValuesOfTheWrongTypeOrRangeAreDamageNotUndefined) {
  const std::vector<SqlValue> written =
      RowWriter().AddText("x").Add(-1).Add(int64_t{1} << 40).AddText("[1]").Finish();
  SqlRow row = {SqlValue(int64_t{1})};
  row.insert(row.end(), written.begin(), written.end());
  RowReader reader(row);
  EXPECT_EQ(reader.Int(), 1);
  EXPECT_EQ(reader.Int(), 0);
  EXPECT_TRUE(reader.damaged());
  EXPECT_EQ(reader.Size(), 0u);
  EXPECT_EQ(reader.Count(), 0u);
  EXPECT_TRUE(reader.Map().empty());
}

}  // namespace
}  // namespace docmem::store

#include "client/cli/display.h"

#include <gtest/gtest.h>

#include <sstream>

#include "client/cli/table.h"

namespace docmem::cli {
namespace {

TEST(Display, TextOfUsersCannotSteerATerminal) {
  EXPECT_EQ(Printable("a\x1b[31mb\x07\nc\td"), "a\\x1b[31mb\\x07\nc\td");
  EXPECT_EQ(PrintableLine("a\nb\tc"), "a\\nb\\tc");
  EXPECT_EQ(Printable("\xc2\x9b"
                      "31m"),
            "\\x9b31m");
  EXPECT_EQ(Printable("b\xc3\xa4r \xf0\x9f\x90\xbb"), "b\xc3\xa4r \xf0\x9f\x90\xbb");
  EXPECT_EQ(Printable("a\xff"
                      "b"),
            "a?b");
  EXPECT_EQ(Printable(std::string("a\0b", 3)), "a\\x00b");
}

TEST(Display, Utf8IsRecognised) {
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8("Straße 🐻"));
  EXPECT_TRUE(IsUtf8(std::string("a\0b", 3)));
  EXPECT_FALSE(IsUtf8("\xff"));
  EXPECT_FALSE(IsUtf8("\xc3"));
  EXPECT_FALSE(IsUtf8("\xed\xa0\x80"));
}

TEST(Display, WidthCountsColumns) {
  EXPECT_EQ(DisplayWidth("abc"), 3U);
  EXPECT_EQ(DisplayWidth("Straße"), 6U);
  EXPECT_EQ(DisplayWidth("文書"), 4U);
}

TEST(Display, SizesAndTimesAreShort) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(999), "999 B");
  EXPECT_EQ(FormatBytes(4'234'567), "4.2 MB");
  EXPECT_EQ(FormatBytes(999'999), "1.0 MB");
  EXPECT_EQ(FormatCount(1, "token"), "1 token");
  EXPECT_EQ(FormatCount(0, "token"), "0 tokens");
  EXPECT_EQ(FormatSeconds(0.0853), "85 ms");
  EXPECT_EQ(FormatSeconds(3.24), "3.2 s");
  EXPECT_EQ(FormatSeconds(5), "5 s");
  EXPECT_EQ(FormatSeconds(725), "12 min 5 s");
  EXPECT_EQ(FormatSeconds(90'000), "1 d 1 h");
  EXPECT_EQ(FormatTime({}), "-");
}

TEST(Table, ColumnsAreAlignedAndNothingIsCut) {
  Table table({"NAME", ">SIZE", "TITLE"});
  table.Add({"文書", "7", "a title that is longer than any other\n"});
  table.Add({"abc", "1234", ""});
  std::ostringstream out;
  table.Print(out);
  EXPECT_EQ(out.str(),
            "NAME  SIZE  TITLE\n"
            "文書     7  a title that is longer than any other\\n\n"
            "abc   1234\n");
}

TEST(Fields, EmptyValuesAreLeftOut) {
  Fields fields;
  fields.Add("a", "1");
  fields.Add("longer", "2");
  fields.Add("none", "");
  std::ostringstream out;
  fields.Print(out);
  EXPECT_EQ(out.str(), "a       1\nlonger  2\n");
}

}  // namespace
}  // namespace docmem::cli

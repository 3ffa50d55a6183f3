#include "server/interceptors/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/formats/digest.h"

namespace docmem::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string Digest(const std::string& token) {
  return absl::StrCat("sha256:", engine::Sha256Hex(token));
}

std::string ErrorOf(const std::string& text) {
  const auto file = TokenFile::Parse(text);
  return file.ok() ? "no error" : std::string(file.status().message());
}

TEST(TokenFile, ALineGivesATokenItsRoleAndCollections) {
  const auto file = TokenFile::Parse(
      absl::StrCat("# who may do what\n\n", "  alice ", Digest("a"), "\tquery law,news\r\n",
                   "bob@night ", Digest("b"), " admin *\n", "web cert:web.example write default"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->principals(), 3U);
  const Principal* alice = file->FindToken("a");
  ASSERT_NE(alice, nullptr);
  EXPECT_EQ(alice->name, "alice");
  EXPECT_EQ(alice->role, Role::kQuery);
  EXPECT_TRUE(alice->collections.contains("law"));
  EXPECT_TRUE(alice->collections.contains("news"));
  EXPECT_FALSE(alice->collections.contains("default"));
  EXPECT_TRUE(file->FindToken("b")->collections.all());
  EXPECT_EQ(file->FindCertificate("web.example")->role, Role::kWrite);
}

TEST(TokenFile, LimitsComeBehindTheRest) {
  const auto file = TokenFile::Parse(absl::StrCat(
      "a ", Digest("a"), " query * max_queued=8 max_in_flight=16\nb ", Digest("b"), " query *"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->FindToken("a")->limits, (QuestionLimits{.max_in_flight = 16, .max_queued = 8}));
  EXPECT_EQ(file->FindToken("b")->limits, QuestionLimits());
}

TEST(TokenFile, NobodyElseIsFound) {
  const auto file = TokenFile::Parse(absl::StrCat("a ", Digest("a"), " query *\nb cert:b query *"));
  ASSERT_TRUE(file.ok()) << file.status();
  for (const std::string& token : {std::string(), std::string("A"), std::string("a "),
                                   std::string("b"), engine::Sha256Hex("a"), Digest("a")}) {
    EXPECT_EQ(file->FindToken(token), nullptr) << token;
  }
  EXPECT_EQ(file->FindCertificate("a"), nullptr);
  EXPECT_EQ(file->FindCertificate("B"), nullptr);
}

TEST(TokenFile, ANameMayHaveSeveralCredentialsButOneSetOfRights) {
  const std::string first = absl::StrCat("a ", Digest("old"), " write x,y\n");
  const auto file = TokenFile::Parse(absl::StrCat(first, "a ", Digest("new"), " write y,x\n"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->principals(), 1U);
  EXPECT_EQ(file->FindToken("old"), file->FindToken("new"));
  for (const char* rights : {" admin x,y", " write x", " write *", " write x,y max_queued=1"}) {
    EXPECT_THAT(ErrorOf(absl::StrCat(first, "a ", Digest("new"), rights)),
                StartsWith("line 2, name: "))
        << rights;
  }
}

TEST(TokenFile, MistakesAreNamedByLineAndField) {
  const std::string good = absl::StrCat("a ", Digest("a"), " query *\n");
  const auto second = [&](const std::string& line) { return ErrorOf(good + line); };
  EXPECT_THAT(second("b"), StartsWith("line 2, fields: "));
  EXPECT_THAT(second(absl::StrCat("b ", Digest("b"), " query")), StartsWith("line 2, fields: "));
  const std::string start = absl::StrCat("b ", Digest("b"), " query * ");
  for (const char* limits : {"more", "max_bytes=5", "=1", "max_queued=1 x"}) {
    EXPECT_THAT(second(start + limits), StartsWith("line 2, limits: ")) << limits;
  }
  for (const char* number : {"", "=", "=0", "=-1", "=1.5", "=4294967296", "=1 max_queued=1"}) {
    EXPECT_THAT(second(absl::StrCat(start, "max_queued", number)), StartsWith("line 2, max_queued"))
        << number;
  }
  EXPECT_THAT(second(absl::StrCat("b/c ", Digest("b"), " query *")), StartsWith("line 2, name: "));
  EXPECT_THAT(second(absl::StrCat(std::string(129, 'b'), " ", Digest("b"), " query *")),
              StartsWith("line 2, name: "));
  EXPECT_THAT(second(absl::StrCat("b ", Digest("b"), " Query *")), StartsWith("line 2, role: "));
  for (const char* collections : {"law,", ",law", "l/w", ".law", "*,law", "law,*"}) {
    EXPECT_THAT(second(absl::StrCat("b ", Digest("b"), " query ", collections)),
                StartsWith("line 2, collections: "))
        << collections;
  }
  EXPECT_THAT(second(absl::StrCat("b ", Digest("a"), " query *")),
              StartsWith("line 2, credential: "));
  for (const std::string& credential :
       {std::string("sha256:"), absl::StrCat("sha256:", std::string(63, '0')),
        absl::StrCat("sha256:", std::string(64, 'A')), std::string("md5:00"), std::string("cert:"),
        std::string("secret-token")}) {
    EXPECT_THAT(second(absl::StrCat("b ", credential, " query *")),
                AllOf(StartsWith("line 2, credential: "), Not(HasSubstr("secret"))))
        << credential;
  }
}

TEST(TokenFile, ATextThatNamesNobodyIsRefused) {
  for (const char* text : {"", "\n\n", "# nobody\n"}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr("names nobody")) << text;
  }
}

TEST(TokenFile, AFileIsNamedInItsErrors) {
  const std::string path = testing::TempDir() + "docmem_token_file_test";
  std::ofstream(path) << "a\n";
  EXPECT_THAT(std::string(TokenFile::Read(path).status().message()),
              StartsWith(path + ": line 1, fields: "));
  std::ofstream(path) << "a " << Digest("a") << " query *\n";
  EXPECT_TRUE(TokenFile::Read(path).ok());
  std::ofstream(path) << std::string(TokenFile::kMaxBytes + 1, '\n');
  EXPECT_EQ(TokenFile::Read(path).status().code(), absl::StatusCode::kUnavailable);
  for (const std::string& absent : {path + ".absent", testing::TempDir()}) {
    EXPECT_THAT(std::string(TokenFile::Read(absent).status().message()), StartsWith(absent));
  }
}

}  // namespace
}  // namespace docmem::server

#include "server/interceptors/file_authenticator.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/formats/digest.h"
#include "server/errors/error.h"

namespace docmem::server {
namespace {

class FileAuthenticatorTest : public testing::Test {
 protected:
  void SetUp() override {
    Write(absl::StrCat("a ", Digest("token-a"), " query *\nweb cert:web.example write *\n"));
    auto opened = FileAuthenticator::Open(path_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    authenticator_ = *std::move(opened);
  }

  static std::string Digest(const std::string& token) {
    return absl::StrCat("sha256:", engine::Sha256Hex(token));
  }
  void Write(const std::string& text) const { std::ofstream(path_) << text; }

  // The principal's name, or the reason of the refusal.
  std::string Who(const std::string& authorization,
                  const std::vector<std::string>& certificate = {}) const {
    const auto who = authenticator_->Authenticate(
        {.authorization = authorization, .certificate_names = certificate});
    if (who.ok()) return who->name;
    EXPECT_EQ(who.status().code(), absl::StatusCode::kUnauthenticated);
    EXPECT_EQ(who.status().message().find("token-"), absl::string_view::npos);
    return store::ReasonOf(who.status());
  }

  const std::string path_ = testing::TempDir() + "docmem_file_authenticator_test";
  std::unique_ptr<FileAuthenticator> authenticator_;
};

TEST_F(FileAuthenticatorTest, ATokenIsTheHeadersSecondWord) {
  EXPECT_EQ(Who("Bearer token-a"), "a");
  EXPECT_EQ(Who("bearer token-a"), "a");
  EXPECT_EQ(Who(""), "CREDENTIALS_MISSING");
  for (const char* header : {"token-a", "Bearer", "Bearer ", "Bearer  token-a", "Bearer token-a ",
                             "Basic token-a", "Bearer token-b"}) {
    EXPECT_EQ(Who(header), "CREDENTIALS_INVALID") << header;
  }
}

TEST_F(FileAuthenticatorTest, ACertificateCountsWhereNoTokenCame) {
  EXPECT_EQ(Who("", {"other.example", "web.example"}), "web");
  EXPECT_EQ(Who("", {"other.example"}), "CREDENTIALS_INVALID");
  EXPECT_EQ(Who("Bearer token-a", {"web.example"}), "a");
  EXPECT_EQ(Who("Bearer token-b", {"web.example"}), "CREDENTIALS_INVALID");
}

TEST_F(FileAuthenticatorTest, AReloadChangesWhoIsKnown) {
  Write(absl::StrCat("b ", Digest("token-b"), " query *\n"));
  ASSERT_TRUE(authenticator_->Reload().ok());
  EXPECT_EQ(Who("Bearer token-b"), "b");
  EXPECT_EQ(Who("Bearer token-a"), "CREDENTIALS_INVALID");
}

TEST_F(FileAuthenticatorTest, ABadFileChangesNothing) {
  for (const char* text : {"", "b sha256:0 query *\n", "# nobody\n"}) {
    Write(text);
    EXPECT_FALSE(authenticator_->Reload().ok()) << text;
    EXPECT_EQ(Who("Bearer token-a"), "a");
    EXPECT_EQ(authenticator_->principals(), 2U);
  }
}

}  // namespace
}  // namespace docmem::server

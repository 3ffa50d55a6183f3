#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/commands.h"
#include "client/cli/json.h"
#include "client/cli/session.h"
#include "client/cli/table.h"

namespace docmem::cli {
namespace {

constexpr size_t kTokenBytes = 32;

std::string Sha256Hex(const std::string& text) {
  std::array<unsigned char, kTokenBytes> digest{};
  EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  return absl::BytesToHexString({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

// As the daemon's token file wants them.
bool IsName(const std::string& name) {
  constexpr size_t kMaxNameBytes = 128;
  return !name.empty() && name.size() <= kMaxNameBytes &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '@' || c == '-';
         });
}

class TokenNewCommand final : public Command {
 public:
  TokenNewCommand() : Command("new", "Make an access token and its line for the token file") {
    Describe(
        "The token itself isn't stored anywhere: give it to its user, who sets DOCMEM_TOKEN. "
        "The line goes into the daemon's token file. No daemon is asked.");
    arguments().Positional(Text("NAME", &name_), "Name of its user");
    arguments().Option("--role", Choice("ROLE", {"query", "write", "admin"}, &role_),
                       "What it allows; else query");
    arguments().Option("--collection", Texts("NAME", &collections_),
                       "Collection it may use; else all");
  }

  bool NeedsConnection() const override { return false; }

  absl::Status Run(Session& session) override {
    if (!IsName(name_)) return UsageError("NAME must be 1 to 128 of A-Z a-z 0-9 . _ @ -");
    std::array<unsigned char, kTokenBytes> bytes{};
    if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
      return absl::UnavailableError("the system has no random numbers");
    }
    const std::string token =
        absl::BytesToHexString({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    const std::string collections = collections_.empty() ? "*" : absl::StrJoin(collections_, ",");
    const std::string line =
        absl::StrCat(name_, " sha256:", Sha256Hex(token), " ", role_, " ", collections);
    if (session.json()) {
      session.PrintJson(JsonObject({{"token", JsonString(token)}, {"line", JsonString(line)}}));
      return absl::OkStatus();
    }
    Fields fields;
    fields.Add("token", token);
    fields.Add("line", line);
    fields.Print(session.out());
    return absl::OkStatus();
  }

 private:
  std::string name_;
  std::string role_ = "query";
  std::vector<std::string> collections_;
};

}  // namespace

std::unique_ptr<Command> MakeTokenGroup() {
  auto group = std::make_unique<CommandGroup>("token", "Make access tokens");
  group->Add(std::make_unique<TokenNewCommand>());
  return group;
}

}  // namespace docmem::cli

#include "server/interceptors/token_file.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "engine/formats/digest.h"

namespace docmem::server {
namespace {

constexpr size_t kFields = 4;  // limits come behind them
constexpr size_t kDigestDigits = 64;
constexpr size_t kMaxNameBytes = 128;
constexpr char kToken[] = "sha256:";
constexpr char kCertificate[] = "cert:";

absl::Status Bad(const char* field, const char* message) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", message));
}

bool IsMadeOf(const std::string& text, const std::string& signs) {
  return !text.empty() && text.size() <= kMaxNameBytes &&
         std::all_of(text.begin(), text.end(), [&](unsigned char c) {
           return absl::ascii_isalnum(c) || signs.find(static_cast<char>(c)) != signs.npos;
         });
}

bool IsDigest(const std::string& text) {
  return text.size() == kDigestDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

absl::StatusOr<Role> ReadRole(const std::string& text) {
  constexpr std::pair<const char*, Role> kRoles[] = {
      {"query", Role::kQuery}, {"write", Role::kWrite}, {"admin", Role::kAdmin}};
  for (const auto& [name, role] : kRoles) {
    if (text == name) return role;
  }
  return Bad("role", "must be query, write or admin");
}

absl::StatusOr<AllowedCollections> ReadCollections(const std::string& text) {
  if (text == "*") return AllowedCollections::All();
  const std::set<std::string> names = absl::StrSplit(text, ',');
  for (const std::string& name : names) {
    if (!IsMadeOf(name, "._-") || name.front() == '.') {
      return Bad("collections", "must be *, or ids with a comma and no blank between them");
    }
  }
  return AllowedCollections(names);
}

absl::Status ReadLimit(const std::string& text, QuestionLimits* limits) {
  constexpr std::pair<const char*, uint32_t QuestionLimits::*> kLimits[] = {
      {"max_in_flight", &QuestionLimits::max_in_flight},
      {"max_queued", &QuestionLimits::max_queued}};
  const size_t equals = text.find('=');
  for (const auto& [name, member] : kLimits) {
    if (text.substr(0, equals) != name) continue;
    uint32_t number = 0;
    if (limits->*member != 0) return Bad(name, "comes twice");
    if (equals == std::string::npos || !absl::SimpleAtoi(text.substr(equals + 1), &number) ||
        number == 0) {
      return Bad(name, "must be a whole number from 1, as in max_queued=8");
    }
    limits->*member = number;
    return absl::OkStatus();
  }
  return Bad("limits", "must be max_in_flight=N or max_queued=N");
}

absl::StatusOr<Principal> ReadPrincipal(const std::vector<std::string>& fields) {
  if (!IsMadeOf(fields[0], "._@-")) {
    return Bad("name", "must be 1 to 128 of A-Z a-z 0-9 . _ @ -");
  }
  const absl::StatusOr<Role> role = ReadRole(fields[2]);
  if (!role.ok()) return role.status();
  absl::StatusOr<AllowedCollections> collections = ReadCollections(fields[3]);
  if (!collections.ok()) return collections.status();
  Principal principal{fields[0], *role, *std::move(collections), {}};
  for (size_t i = kFields; i < fields.size(); ++i) {
    if (absl::Status status = ReadLimit(fields[i], &principal.limits); !status.ok()) return status;
  }
  return principal;
}

}  // namespace

absl::StatusOr<TokenFile> TokenFile::Parse(const std::string& text) {
  TokenFile file;
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    if (absl::Status status = file.TakeLine(lines[i]); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("line ", i + 1, ", ", status.message()));
    }
  }
  if (file.principals_.empty()) {
    return absl::InvalidArgumentError("it names nobody; `docmem token new` makes a line");
  }
  return file;
}

absl::Status TokenFile::TakeLine(const std::string& line) {
  const std::vector<std::string> fields =
      absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  if (fields.empty() || fields[0][0] == '#') return absl::OkStatus();
  if (fields.size() < kFields) {
    return Bad("fields", "must be NAME, CREDENTIAL, ROLE, COLLECTIONS and limits, apart by blanks");
  }
  absl::StatusOr<Principal> read = ReadPrincipal(fields);
  if (!read.ok()) return read.status();
  const auto [place, added] = principals_.try_emplace(read->name, *read);
  if (!added && place->second != *read) {
    return Bad("name", "is that of an earlier line with another role, other collections or limits");
  }
  const bool is_token = absl::StartsWith(fields[1], kToken);
  const std::string value(absl::StripPrefix(fields[1], is_token ? kToken : kCertificate));
  if (is_token && !IsDigest(value)) {
    return Bad("credential", "must have 64 lower-case hexadecimal digits after sha256:");
  }
  if (value.empty() || (!is_token && !absl::StartsWith(fields[1], kCertificate))) {
    return Bad("credential", "must be sha256:DIGEST or cert:NAME");
  }
  if (!(is_token ? tokens_ : certificates_).emplace(value, &place->second).second) {
    return Bad("credential", "is that of an earlier line");
  }
  return absl::OkStatus();
}

absl::StatusOr<TokenFile> TokenFile::Read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text(kMaxBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad() || !in.eof() || !in.is_open()) {
    return absl::UnavailableError(
        absl::StrCat(path, " can't be read, or is longer than ", kMaxBytes, " bytes"));
  }
  text.resize(static_cast<size_t>(in.gcount()));
  absl::StatusOr<TokenFile> file = Parse(text);
  if (file.ok()) return file;
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", file.status().message()));
}

const Principal* TokenFile::FindToken(const std::string& token) const {
  const auto found = tokens_.find(engine::Sha256Hex(token));
  return found == tokens_.end() ? nullptr : found->second;
}

const Principal* TokenFile::FindCertificate(const std::string& name) const {
  const auto found = certificates_.find(name);
  return found == certificates_.end() ? nullptr : found->second;
}

}  // namespace docmem::server

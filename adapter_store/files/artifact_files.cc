#include "adapter_store/files/artifact_files.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "absl/strings/str_format.h"

namespace docmem::store {
namespace {

constexpr size_t kIdDigits = 16;
constexpr std::array<const char*, 5> kSuffixes = {"", ".text", ".cache", ".adapter", ".checkpoint"};

}  // namespace

NewFile FileFromMemory(std::string name, std::span<const std::byte> bytes) {
  return {std::move(name), bytes.size(),
          [bytes](ArtifactWriter& writer) { return writer.Append(bytes); }};
}

std::string FileName(const FileRef& ref) {
  return absl::StrFormat("%016x%s", ref.id, kSuffixes[static_cast<size_t>(ref.kind)]);
}

std::optional<FileRef> ParseFileName(const std::string& name) {
  FileRef ref;
  const char* digits_end = name.data() + std::min(kIdDigits, name.size());
  const auto [end, error] = std::from_chars(name.data(), digits_end, ref.id, 16);
  if (error != std::errc() || ref.id <= 0) return std::nullopt;
  for (const ArtifactKind kind : {ArtifactKind::kText, ArtifactKind::kCache, ArtifactKind::kAdapter,
                                  ArtifactKind::kCheckpoint}) {
    ref.kind = kind;
    if (FileName(ref) == name) return ref;
  }
  return std::nullopt;
}

}  // namespace docmem::store

// Fuzzes an archive behind its checksums: the input is its manifest, and what follows a NUL.
#include "absl/strings/str_cat.h"
#include "adapter_store/archive_layout.h"
#include "adapter_store/archive_reader.h"

using namespace docmem::store;  // NOLINT

namespace {

class Sink : public ArchiveSink {
 public:
  // What is accepted must be what we could have written.
  absl::Status OnManifest(const ArchiveManifest& manifest) override {
    if (!ParseManifest(WriteManifest(manifest)).ok()) __builtin_trap();
    for (const ArchivePart& part : PartsOf(manifest)) {
      if (part.file->bytes > 1000) return absl::OutOfRangeError("a limit");
    }
    return absl::OkStatus();
  }
  absl::Status OnPart(const ArchivePart&, std::string) override { return absl::OkStatus(); }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  const std::string manifest = input.substr(0, input.find('\0'));
  Sink sink;
  ArchiveReader reader(&sink);
  const std::string length = EncodeLength(static_cast<uint32_t>(manifest.size()));
  reader
      .Take(absl::StrCat(kArchiveMagic, EncodeLength(kArchiveVersion), length, Xxh3Hex(manifest),
                         manifest, input.substr(std::min(manifest.size() + 1, size))))
      .IgnoreError();
  return 0;
}

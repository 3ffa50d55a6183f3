#include "adapter_store/files/text_codec.h"

#include <zstd.h>

#include <memory>

#include "absl/strings/str_cat.h"

namespace docmem::store {
namespace {

constexpr int kCompressionLevel = 3;

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

}  // namespace

std::string CompressText(const std::string& text) {
  std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kCompressionLevel);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  std::string frame(ZSTD_compressBound(text.size()), '\0');
  frame.resize(ZSTD_compress2(context.get(), frame.data(), frame.size(), text.data(), text.size()));
  return frame;
}

absl::StatusOr<std::string> DecompressText(std::span<const std::byte> frame, uint64_t text_bytes) {
  const uint64_t declared = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (declared != text_bytes ||
      ZSTD_findFrameCompressedSize(frame.data(), frame.size()) != frame.size()) {
    return absl::DataLossError(
        absl::StrCat("the compressed text isn't one frame of ", text_bytes, " bytes"));
  }
  std::string text(text_bytes, '\0');
  const size_t size = ZSTD_decompress(text.data(), text.size(), frame.data(), frame.size());
  if (ZSTD_isError(size) || size != text_bytes) {
    return absl::DataLossError("the compressed text is damaged");
  }
  return text;
}

}  // namespace docmem::store

#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/formats/mapped_file.h"

namespace docmem::engine {

// The element types that the format defines and that can be stored in whole bytes.
enum class DType {
  kF64,
  kF32,
  kF16,
  kBF16,
  kI64,
  kI32,
  kI16,
  kI8,
  kU64,
  kU32,
  kU16,
  kU8,
  kBool,
  kF8E4M3,
  kF8E5M2
};

size_t DTypeBytes(DType dtype) noexcept;
std::string_view DTypeName(DType dtype) noexcept;  // as in the file: "BF16"

struct TensorInfo {
  DType dtype;
  std::vector<int64_t> shape;  // no element is negative; empty means a scalar
  size_t begin;                // bytes from the start of the payload
  size_t end;                  // end - begin == product of shape * DTypeBytes(dtype)
};

using TensorMap = std::map<std::string, TensorInfo, std::less<>>;
using MetadataMap = std::map<std::string, std::string, std::less<>>;

// The checked header of a safetensors file: 8 bytes of little-endian length, a JSON object of that
// length, then the payload. Immutable, thread-safe.
class SafetensorsHeader {
 public:
  // `head` starts at the first byte of the file and holds at least the whole header (it may hold
  // more); `file_bytes` is the length of the whole file; `file_name` is used in errors only.
  // Throws kInvalidArgument naming the tensor or, for the file as a whole, `file_name`: header cut
  // or above 100 MB, JSON malformed or with a name twice, dtype unknown, a shape that overflows,
  // offsets that are reversed, beyond the end, not of the shape's length or not aligned to the
  // dtype, tensors that overlap, bytes that belong to no tensor, a file that is too short (with the
  // number of bytes missing).
  static SafetensorsHeader Parse(std::span<const std::byte> head, uint64_t file_bytes,
                                 const std::string& file_name);

  const TensorMap& tensors() const noexcept { return tensors_; }
  const MetadataMap& metadata() const noexcept { return metadata_; }
  size_t payload_offset() const noexcept { return payload_offset_; }  // bytes from the file's start

 private:
  SafetensorsHeader() = default;

  TensorMap tensors_;
  MetadataMap metadata_;
  size_t payload_offset_ = 0;
};

// The length of the whole header (length prefix and JSON), read from a file's first 8 bytes; for
// readers that want to read the header alone. Throws like SafetensorsHeader::Parse.
size_t SafetensorsHeaderBytes(std::span<const std::byte> head, const std::string& file_name);

// A whole safetensors file in memory that belongs to somebody else and must outlive the view.
class SafetensorsView {
 public:
  // Throws as SafetensorsHeader::Parse does.
  static SafetensorsView Parse(std::span<const std::byte> file, const std::string& file_name);

  const SafetensorsHeader& header() const noexcept { return header_; }
  const TensorMap& tensors() const noexcept { return header_.tensors(); }
  const MetadataMap& metadata() const noexcept { return header_.metadata(); }

  // Null if there is no tensor of this name. The pointer lives as long as the view.
  const TensorInfo* Find(std::string_view name) const noexcept;

  // Throws kNotFound with the tensor's name.
  const TensorInfo& Get(std::string_view name) const;

  // The tensor's elements, row-major, little-endian, aligned to the dtype if the file's first byte
  // is (a mapped file's is). `info` must come from this view.
  std::span<const std::byte> Data(const TensorInfo& info) const noexcept;

 private:
  SafetensorsView(SafetensorsHeader header, std::span<const std::byte> file, std::string file_name)
      : header_(std::move(header)), file_(file), file_name_(std::move(file_name)) {}

  SafetensorsHeader header_;
  std::span<const std::byte> file_;
  std::string file_name_;
};

// A mapped file together with the view of it.
class SafetensorsFile {
 public:
  // Throws as MappedFile::Open and SafetensorsHeader::Parse do.
  static SafetensorsFile Open(const std::filesystem::path& path,
                              SymbolicLinks links = SymbolicLinks::kFollow);

  const SafetensorsView& view() const noexcept { return view_; }
  const MappedFile& file() const noexcept { return file_; }

 private:
  SafetensorsFile(MappedFile file, SafetensorsView view)
      : file_(std::move(file)), view_(std::move(view)) {}

  MappedFile file_;
  SafetensorsView view_;
};

struct TensorSpec {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
};

// Where everything of a file to be written goes.
struct SafetensorsLayout {
  std::string header;   // the file's first bytes; a multiple of the payload's alignment
  TensorMap tensors;    // offsets from the end of the header
  uint64_t file_bytes;  // header and payload
};

// Lays the tensors out one behind the other in the order given, so put wide dtypes first or pad
// shapes yourself. The header's keys are sorted and it is padded with spaces: the same arguments
// give the same bytes everywhere. Throws kInvalidArgument naming the tensor: name empty, twice or
// "__metadata__", a negative or overflowing shape, an offset that isn't aligned to the dtype.
// `payload_alignment` is a multiple of 8.
SafetensorsLayout LayOutSafetensors(std::span<const TensorSpec> tensors,
                                    const MetadataMap& metadata, size_t payload_alignment = 64);

// Takes the next bytes of a file. May throw; what was written before is then incomplete.
using ByteSink = std::function<void(std::span<const std::byte>)>;

struct TensorSource {
  TensorSpec spec;
  std::span<const std::byte> data;  // of the length the spec implies, else kInvalidArgument
};

// Hands a whole file to `sink` in pieces: the header, then each tensor's bytes as they lie in
// memory, without a copy. Throws as LayOutSafetensors does and passes on what the sink throws.
void WriteSafetensors(std::span<const TensorSource> tensors, const MetadataMap& metadata,
                      const ByteSink& sink, size_t payload_alignment = 64);

}  // namespace docmem::engine

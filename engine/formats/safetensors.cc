#include "engine/formats/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/formats/json_fields.h"

namespace docmem::engine {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kMaxJsonBytes = 100'000'000;
constexpr const char* kMetadataKey = "__metadata__";

struct DTypeEntry {
  std::string_view name;
  size_t bytes;
};

// In the order of the enumerators.
constexpr std::array<DTypeEntry, 15> kDTypes = {{{"F64", 8},
                                                 {"F32", 4},
                                                 {"F16", 2},
                                                 {"BF16", 2},
                                                 {"I64", 8},
                                                 {"I32", 4},
                                                 {"I16", 2},
                                                 {"I8", 1},
                                                 {"U64", 8},
                                                 {"U32", 4},
                                                 {"U16", 2},
                                                 {"U8", 1},
                                                 {"BOOL", 1},
                                                 {"F8_E4M3", 1},
                                                 {"F8_E5M2", 1}}};

DType ParseDType(const std::string& name, const std::string& tensor) {
  const auto* found = std::find_if(kDTypes.begin(), kDTypes.end(),
                                   [&](const DTypeEntry& entry) { return entry.name == name; });
  if (found == kDTypes.end())
    ThrowInvalidArgument(tensor, "has the unknown dtype \"" + name + "\"");
  return static_cast<DType>(found - kDTypes.begin());
}

size_t ShapeBytes(DType dtype, std::span<const int64_t> shape, const std::string& tensor) {
  size_t bytes = DTypeBytes(dtype);
  bool overflow = false;
  for (const int64_t extent : shape) {
    overflow |= extent < 0 || __builtin_mul_overflow(bytes, static_cast<size_t>(extent), &bytes);
  }
  if (overflow || bytes > std::numeric_limits<int64_t>::max()) {
    ThrowInvalidArgument(tensor, "has a shape that no memory can hold");
  }
  return bytes;
}

void CheckAlignment(const TensorInfo& info, size_t payload_offset, const std::string& tensor) {
  if ((payload_offset + info.begin) % DTypeBytes(info.dtype) != 0) {
    ThrowInvalidArgument(tensor, "starts at byte " + std::to_string(payload_offset + info.begin) +
                                     " of the file, which isn't aligned to its dtype " +
                                     std::string(DTypeName(info.dtype)) +
                                     "; save the file again with a current safetensors library");
  }
}

TensorInfo ParseTensor(const JsonFields& fields, const std::string& tensor) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  const std::vector<int64_t> offsets = fields.Ints("data_offsets", 0, kMax);
  if (offsets.size() != 2 || offsets[0] > offsets[1]) {
    ThrowInvalidArgument(tensor, "data_offsets must be a start and an end that isn't before it");
  }
  TensorInfo info{.dtype = ParseDType(fields.String("dtype"), tensor),
                  .shape = fields.Ints("shape", 0, kMax),
                  .begin = static_cast<size_t>(offsets[0]),
                  .end = static_cast<size_t>(offsets[1])};
  const size_t wanted = ShapeBytes(info.dtype, info.shape, tensor);
  if (info.end - info.begin != wanted) {
    ThrowInvalidArgument(tensor, "has " + std::to_string(info.end - info.begin) +
                                     " bytes, but its shape and dtype make " +
                                     std::to_string(wanted));
  }
  return info;
}

// Every byte of the payload must belong to exactly one tensor.
void CheckCoverage(const TensorMap& tensors, uint64_t payload_bytes, const std::string& file_name) {
  std::vector<const TensorMap::value_type*> order;
  order.reserve(tensors.size());
  for (const auto& entry : tensors) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  uint64_t covered = 0;
  for (const auto* entry : order) {
    const auto& [name, info] = *entry;
    if (info.begin < covered) ThrowInvalidArgument(name, "overlaps another tensor in " + file_name);
    if (info.begin > covered) {
      ThrowInvalidArgument(name, std::to_string(info.begin - covered) +
                                     " bytes before it belong to no tensor in " + file_name);
    }
    covered = info.end;
    if (covered > payload_bytes) {
      ThrowInvalidArgument(
          name, file_name + " is cut: " + std::to_string(order.back()->second.end - payload_bytes) +
                    " bytes are missing, the first of them in this tensor");
    }
  }
  if (covered < payload_bytes) {
    ThrowInvalidArgument(file_name, "has " + std::to_string(payload_bytes - covered) +
                                        " bytes at its end that belong to no tensor");
  }
}

MetadataMap ParseMetadata(const Json& value, const std::string& file_name) {
  const JsonFields fields(value, file_name + "." + kMetadataKey);
  MetadataMap metadata;
  for (const auto& [key, text] : value.items()) metadata.emplace(key, fields.String(key));
  return metadata;
}

std::string HeaderJson(const TensorMap& tensors, const MetadataMap& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) {
    Json& object = header[kMetadataKey] = Json::object();
    for (const auto& [key, value] : metadata) object[key] = value;
  }
  for (const auto& [name, info] : tensors) {
    header[name] = {{"dtype", DTypeName(info.dtype)},
                    {"shape", info.shape},
                    {"data_offsets", {info.begin, info.end}}};
  }
  try {
    return header.dump();
  } catch (const Json::exception&) {
    ThrowInvalidArgument("", "a tensor name or metadata value isn't UTF-8");
  }
}

std::string FramedHeader(const std::string& json, size_t payload_alignment) {
  const size_t unpadded = kLengthBytes + json.size();
  const size_t padding = (payload_alignment - unpadded % payload_alignment) % payload_alignment;
  const uint64_t json_bytes = json.size() + padding;
  if (json_bytes > kMaxJsonBytes) ThrowInvalidArgument("", "the header would exceed 100 MB");
  std::string header(reinterpret_cast<const char*>(&json_bytes), kLengthBytes);
  return header + json + std::string(padding, ' ');
}

}  // namespace

size_t DTypeBytes(DType dtype) noexcept { return kDTypes[static_cast<size_t>(dtype)].bytes; }

std::string_view DTypeName(DType dtype) noexcept {
  return kDTypes[static_cast<size_t>(dtype)].name;
}

size_t SafetensorsHeaderBytes(std::span<const std::byte> head, const std::string& file_name) {
  if (head.size() < kLengthBytes) {
    ThrowInvalidArgument(
        file_name, "has " + std::to_string(head.size()) + " bytes, too few for a safetensors file");
  }
  uint64_t json_bytes = 0;
  std::copy_n(head.begin(), kLengthBytes, reinterpret_cast<std::byte*>(&json_bytes));
  if (json_bytes > kMaxJsonBytes) {
    ThrowInvalidArgument(file_name, "claims a header of " + std::to_string(json_bytes) +
                                        " bytes; at most 100 MB are allowed, so this isn't a "
                                        "safetensors file");
  }
  return kLengthBytes + json_bytes;
}

SafetensorsHeader SafetensorsHeader::Parse(std::span<const std::byte> head, uint64_t file_bytes,
                                           const std::string& file_name) {
  const size_t header_bytes = SafetensorsHeaderBytes(head, file_name);
  const uint64_t available = std::min<uint64_t>(head.size(), file_bytes);
  if (header_bytes > available) {
    ThrowInvalidArgument(file_name, "is cut: " + std::to_string(header_bytes - available) +
                                        " bytes of its header are missing");
  }
  const std::string_view text(reinterpret_cast<const char*>(head.data()) + kLengthBytes,
                              header_bytes - kLengthBytes);
  const Json json = ParseJson(text, file_name, {.max_bytes = kMaxJsonBytes, .max_depth = 4});
  const JsonFields fields(json, file_name);
  SafetensorsHeader header;
  header.payload_offset_ = header_bytes;
  for (const auto& [name, value] : json.items()) {
    if (name == kMetadataKey) {
      header.metadata_ = ParseMetadata(value, file_name);
      continue;
    }
    TensorInfo info = ParseTensor(JsonFields(value, fields.Path(name)), name);
    CheckAlignment(info, header_bytes, name);
    header.tensors_.emplace(name, std::move(info));
  }
  CheckCoverage(header.tensors_, file_bytes - header_bytes, file_name);
  return header;
}

SafetensorsView SafetensorsView::Parse(std::span<const std::byte> file,
                                       const std::string& file_name) {
  return SafetensorsView(SafetensorsHeader::Parse(file, file.size(), file_name), file, file_name);
}

const TensorInfo* SafetensorsView::Find(std::string_view name) const noexcept {
  const auto found = tensors().find(name);
  return found == tensors().end() ? nullptr : &found->second;
}

const TensorInfo& SafetensorsView::Get(std::string_view name) const {
  const TensorInfo* info = Find(name);
  if (info == nullptr) ThrowNotFound(std::string(name), "no such tensor in " + file_name_);
  return *info;
}

std::span<const std::byte> SafetensorsView::Data(const TensorInfo& info) const noexcept {
  return file_.subspan(header_.payload_offset() + info.begin, info.end - info.begin);
}

SafetensorsFile SafetensorsFile::Open(const std::filesystem::path& path, SymbolicLinks links) {
  MappedFile file = MappedFile::Open(path, links);
  SafetensorsView view = SafetensorsView::Parse(file.bytes(), path.filename().string());
  return SafetensorsFile(std::move(file), std::move(view));
}

SafetensorsLayout LayOutSafetensors(std::span<const TensorSpec> tensors,
                                    const MetadataMap& metadata, size_t payload_alignment) {
  SafetensorsLayout layout;
  size_t offset = 0;
  for (const TensorSpec& spec : tensors) {
    const size_t bytes = ShapeBytes(spec.dtype, spec.shape, spec.name);
    TensorInfo info{.dtype = spec.dtype, .shape = spec.shape, .begin = offset, .end = 0};
    if (__builtin_add_overflow(offset, bytes, &offset)) {
      ThrowInvalidArgument(spec.name, "makes the file longer than can be counted");
    }
    info.end = offset;
    CheckAlignment(info, 0, spec.name);
    if (spec.name.empty() || spec.name == kMetadataKey ||
        !layout.tensors.emplace(spec.name, std::move(info)).second) {
      ThrowInvalidArgument(spec.name, "isn't a name for a tensor, or comes twice");
    }
  }
  layout.header = FramedHeader(HeaderJson(layout.tensors, metadata), payload_alignment);
  layout.file_bytes = layout.header.size() + offset;
  return layout;
}

void WriteSafetensors(std::span<const TensorSource> tensors, const MetadataMap& metadata,
                      const ByteSink& sink, size_t payload_alignment) {
  std::vector<TensorSpec> specs;
  specs.reserve(tensors.size());
  for (const TensorSource& tensor : tensors) specs.push_back(tensor.spec);
  const SafetensorsLayout layout = LayOutSafetensors(specs, metadata, payload_alignment);
  for (const TensorSource& tensor : tensors) {
    const TensorInfo& info = layout.tensors.at(tensor.spec.name);
    if (tensor.data.size() != info.end - info.begin) {
      ThrowInvalidArgument(tensor.spec.name, "comes with " + std::to_string(tensor.data.size()) +
                                                 " bytes, needs " +
                                                 std::to_string(info.end - info.begin));
    }
  }
  sink(std::as_bytes(std::span(layout.header)));
  for (const TensorSource& tensor : tensors) sink(tensor.data);
}

}  // namespace docmem::engine

#include "engine/artifacts/sealed_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "engine/formats/digest.h"
#include "engine/formats/json_fields.h"

namespace docmem::engine {
namespace {

constexpr const char* kSealKey = "xxh3_128";
constexpr std::string_view kSealText = "\"xxh3_128\":\"";
constexpr size_t kSealDigits = 32;
constexpr const char* kHeader = "header";
constexpr size_t kLengthBytes = 8;

std::string ChecksumKey(std::string_view section) {
  return std::string(kSealKey) + "." + std::string(section);
}

// Where the seal's digits stand in the header; npos if they don't.
size_t SealPosition(std::string_view header) {
  const size_t found = header.find(kSealText);
  const size_t digits = found + kSealText.size();
  return found == std::string_view::npos || digits + kSealDigits > header.size()
             ? std::string_view::npos
             : digits;
}

std::string Seal(std::string_view header, size_t position) {
  Xxh3 hash;
  hash.Update(header.substr(0, position));
  hash.Update(std::string(kSealDigits, '0'));
  hash.Update(header.substr(position + kSealDigits));
  return hash.Hex();
}

std::string_view CheckedHeader(std::span<const std::byte> head, const std::string& name) {
  size_t bytes = 0;
  try {
    bytes = SafetensorsHeaderBytes(head, name);
  } catch (const Error& error) {
    ThrowDataLoss(kHeader, error.what());
  }
  if (bytes > head.size()) {
    ThrowDataLoss(kHeader, name + " is cut inside its header");
  }
  const std::string_view header(reinterpret_cast<const char*>(head.data()), bytes);
  const size_t position = SealPosition(header);
  if (position == std::string_view::npos) {
    ThrowDataLoss(kHeader, name + " has no checksum of its header");
  }
  if (Seal(header, position) != header.substr(position, kSealDigits)) {
    ThrowDataLoss(kHeader, name + " is damaged: the header's checksum differs");
  }
  return header;
}

void CheckSection(const SafetensorsView& view, const TensorMap::value_type& section,
                  const std::string& name) {
  const auto stored = view.metadata().find(ChecksumKey(section.first));
  if (stored == view.metadata().end()) {
    ThrowDataLoss(section.first, name + " has no checksum of this section");
  }
  if (Xxh3Hex(view.Data(section.second)) != stored->second) {
    ThrowDataLoss(section.first, name + " is damaged: the section's checksum differs");
  }
}

}  // namespace

std::string SealHeader(std::string header) {
  const size_t position = SealPosition(header);
  if (position != std::string::npos) {
    header.replace(position, kSealDigits, Seal(header, position));
  }
  return header;
}

std::string SealedHeader(std::span<const TensorSource> sections, MetadataMap metadata,
                         size_t alignment) {
  std::vector<TensorSpec> specs;
  specs.reserve(sections.size());
  for (const TensorSource& section : sections) {
    specs.push_back(section.spec);
    metadata[ChecksumKey(section.spec.name)] = Xxh3Hex(section.data);
  }
  metadata[kSealKey] = std::string(kSealDigits, '0');
  return SealHeader(LayOutSafetensors(specs, metadata, alignment).header);
}

void WriteSealedFile(std::span<const TensorSource> sections, const MetadataMap& metadata,
                     size_t alignment, const ByteSink& sink) {
  const std::string header = SealedHeader(sections, metadata, alignment);
  sink(std::as_bytes(std::span(header)));
  for (const TensorSource& section : sections) {
    sink(section.data);
  }
}

SafetensorsView OpenSealedFile(std::span<const std::byte> file, const std::string& name) {
  CheckedHeader(file, name);
  try {
    SafetensorsView view = SafetensorsView::Parse(file, name);
    for (const auto& section : view.tensors()) {
      CheckSection(view, section, name);
    }
    return view;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kDataLoss) {
      throw;
    }
    ThrowDataLoss(error.field(), error.what());
  }
}

MetadataMap ReadSealedMetadata(std::span<const std::byte> head, const std::string& name) {
  const std::string_view header = CheckedHeader(head, name);
  try {
    const Json json = ParseJson(header.substr(kLengthBytes), name);
    const JsonFields metadata = JsonFields(json, name).Object("__metadata__");
    MetadataMap result;
    for (const auto& [key, value] : metadata.json().items()) {
      result.emplace(key, metadata.String(key));
    }
    return result;
  } catch (const Error& error) {
    ThrowDataLoss(kHeader, error.what());
  }
}

}  // namespace docmem::engine

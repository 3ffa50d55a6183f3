#include "adapter_store/registry/row_codec.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <span>

#include "absl/strings/str_cat.h"
#include "adapter_store/files/digest.h"

namespace docmem::store {
namespace {

int64_t ChecksumOf(std::span<const SqlValue> columns) {
  while (!columns.empty() && std::holds_alternative<std::monostate>(columns.back())) {
    columns = columns.first(columns.size() - 1);
  }
  std::string bytes;
  for (const SqlValue& column : columns) {
    if (const auto* number = std::get_if<int64_t>(&column)) {
      absl::StrAppend(&bytes, "i", *number, ";");
    } else if (const auto* text = std::get_if<std::string>(&column)) {
      absl::StrAppend(&bytes, "t", text->size(), ":", *text);
    } else {
      bytes += "n";
    }
  }
  return static_cast<int64_t>(Xxh3Of(bytes));
}

}  // namespace

int64_t IntOf(const SqlValue& value) {
  const auto* number = std::get_if<int64_t>(&value);
  return number == nullptr ? 0 : *number;
}

std::string TextOf(const SqlValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text == nullptr ? std::string() : *text;
}

RowWriter& RowWriter::Add(int64_t value) {
  columns_.emplace_back(value);
  return *this;
}

RowWriter& RowWriter::AddSize(uint64_t value) { return Add(static_cast<int64_t>(value)); }

RowWriter& RowWriter::AddText(const std::string& value) {
  columns_.emplace_back(value);
  return *this;
}

RowWriter& RowWriter::AddTime(absl::Time value) { return Add(absl::ToUnixMicros(value)); }

RowWriter& RowWriter::AddReference(int64_t id) {
  if (id != 0) return Add(id);
  columns_.emplace_back(std::monostate());
  return *this;
}

RowWriter& RowWriter::AddOptionalText(const std::string& value) {
  if (!value.empty()) return AddText(value);
  columns_.emplace_back(std::monostate());
  return *this;
}

RowWriter& RowWriter::AddMap(const std::map<std::string, std::string>& value) {
  return AddText(
      nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::vector<SqlValue> RowWriter::Finish() {
  Add(ChecksumOf(columns_));
  return std::move(columns_);
}

RowReader::RowReader(const SqlRow& row) : row_(row) {
  const std::span<const SqlValue> columns(row);
  const auto* checksum = std::get_if<int64_t>(&row.back());
  damaged_ = checksum == nullptr || *checksum != ChecksumOf(columns.subspan(1, row.size() - 2));
}

const SqlValue& RowReader::Next() { return row_[next_++]; }

int64_t RowReader::Int() {
  const SqlValue& value = Next();
  if (!std::holds_alternative<int64_t>(value)) damaged_ = true;
  return IntOf(value);
}

uint64_t RowReader::Size() {
  const int64_t value = Int();
  if (value < 0) damaged_ = true;
  return value < 0 ? 0 : static_cast<uint64_t>(value);
}

uint32_t RowReader::Count() {
  const int64_t value = Int();
  const bool fits = value >= 0 && value <= std::numeric_limits<uint32_t>::max();
  if (!fits) damaged_ = true;
  return fits ? static_cast<uint32_t>(value) : 0;
}

std::string RowReader::Text() {
  const SqlValue& value = Next();
  if (!std::holds_alternative<std::string>(value)) damaged_ = true;
  return TextOf(value);
}

absl::Time RowReader::Time() { return absl::FromUnixMicros(Int()); }

int64_t RowReader::Reference() {
  const SqlValue& value = Next();
  if (std::holds_alternative<std::string>(value)) damaged_ = true;
  return IntOf(value);
}

std::string RowReader::OptionalText() {
  const SqlValue& value = Next();
  if (std::holds_alternative<int64_t>(value)) damaged_ = true;
  return TextOf(value);
}

std::map<std::string, std::string> RowReader::Map() {
  const nlohmann::json parsed = nlohmann::json::parse(Text(), nullptr, false);
  std::map<std::string, std::string> result;
  if (!parsed.is_object()) {
    damaged_ = true;
    return result;
  }
  for (const auto& [key, value] : parsed.items()) {
    if (value.is_string()) {
      result.emplace(key, value.get<std::string>());
    } else {
      damaged_ = true;
    }
  }
  return result;
}

}  // namespace docmem::store

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "adapter_store/registry/registry.h"

namespace docmem::store {

/// The value, or 0 and "" where a damaged database holds one of another type.
int64_t IntOf(const SqlValue& value);
std::string TextOf(const SqlValue& value);

/// Columns of a row as they are written: every table's `checksum` column guards the ones before, up
/// to the last that isn't NULL, so that a migration may append columns that are NULL in old rows.
class RowWriter {
 public:
  RowWriter& Add(int64_t value);
  RowWriter& AddSize(uint64_t value);  ///< at most 2^63 - 1
  RowWriter& AddText(const std::string& value);
  RowWriter& AddTime(absl::Time value);
  RowWriter& AddReference(int64_t id);                   ///< 0: NULL
  RowWriter& AddOptionalText(const std::string& value);  ///< empty: NULL
  RowWriter& AddMap(const std::map<std::string, std::string>& value);
  /// The columns and their checksum.
  std::vector<SqlValue> Finish();

 private:
  std::vector<SqlValue> columns_;
};

/// Reads `id`, guarded columns and `checksum` front to back. A damaged row gives what can be read
/// of it (0 or "" for the rest) and says so.
class RowReader {
 public:
  explicit RowReader(const SqlRow& row);
  int64_t Int();
  uint64_t Size();  ///< negative numbers are damage
  uint32_t Count();
  std::string Text();
  absl::Time Time();
  int64_t Reference();
  std::string OptionalText();
  std::map<std::string, std::string> Map();
  bool damaged() const { return damaged_; }

 private:
  const SqlValue& Next();

  const SqlRow& row_;
  size_t next_ = 0;
  bool damaged_ = false;
};

}  // namespace docmem::store

#include "adapter_store/registry/row_codec.h"

// A row of a damaged database: each input byte chooses a column's type, the input is its value.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  docmem::store::SqlRow row(11);
  for (size_t i = 0; i < row.size() && i < size; ++i) {
    if (data[i] % 3 == 0) row[i] = static_cast<int64_t>(data[i]) - 100;
    if (data[i] % 3 == 1) row[i] = std::string(reinterpret_cast<const char*>(data), size);
  }
  docmem::store::RowReader reader(row);
  reader.Int();
  reader.Size();
  reader.Count();
  reader.Text();
  reader.Map();
  reader.Time();
  reader.Reference();
  reader.OptionalText();
  reader.Map();
  return 0;
}

#include <cstddef>
#include <cstdint>
#include <string>

#include "server/interceptors/token_file.h"

// Whatever is accepted names somebody, and its errors name a line.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto file = docmem::server::TokenFile::Parse(text);
  if (file.ok() && file->principals() == 0) __builtin_trap();
  if (file.ok()) return 0;
  const std::string message(file.status().message());
  if (message.rfind("line ", 0) != 0 && message.rfind("it names nobody", 0) != 0) __builtin_trap();
  return 0;
}

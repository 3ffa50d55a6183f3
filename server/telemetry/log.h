#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

namespace docmem::server {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

/// "debug", "info", "warning", "error"; false for another name.
bool ParseLogLevel(std::string_view name, LogLevel* level);

/// One key of a log line. Values are ids, counts and our own words: never a document, question,
/// answer or system text.
struct LogField {
  std::string_view key;
  std::variant<std::string_view, int64_t, double, bool> value;

  LogField(std::string_view k, std::string_view v) : key(k), value(v) {}
  LogField(std::string_view k, const std::string& v) : key(k), value(std::string_view(v)) {}
  LogField(std::string_view k, const char* v) : key(k), value(std::string_view(v)) {}
  LogField(std::string_view k, bool v) : key(k), value(v) {}
  LogField(std::string_view k, double v) : key(k), value(v) {}
  template <class Integer>
    requires std::is_integral_v<Integer>
  LogField(std::string_view k, Integer v) : key(k), value(static_cast<int64_t>(v)) {}
};

/// Structured log: one JSON object a line on standard error, with `time` (UTC), `level`, `event`
/// and the given fields. Thread-safe.
class Log {
 public:
  explicit Log(LogLevel level);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  using Fields = std::initializer_list<LogField>;
  void Debug(std::string_view event, Fields fields = {});
  void Info(std::string_view event, Fields fields = {});
  void Warning(std::string_view event, Fields fields = {});
  void Error(std::string_view event, Fields fields = {});

  /// The line without its end; for tests.
  static std::string Format(LogLevel level, std::string_view event, Fields fields);

 private:
  void Write(LogLevel level, std::string_view event, Fields fields);

  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace docmem::server

#include "server/telemetry/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace docmem::server {
namespace {

constexpr std::pair<std::string_view, LogLevel> kNames[] = {{"debug", LogLevel::kDebug},
                                                            {"info", LogLevel::kInfo},
                                                            {"warning", LogLevel::kWarning},
                                                            {"error", LogLevel::kError}};

std::string_view NameOf(LogLevel level) { return kNames[static_cast<int>(level)].first; }

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info,
                                                   spdlog::level::warn, spdlog::level::err};
  return kLevels[static_cast<int>(level)];
}

}  // namespace

bool ParseLogLevel(std::string_view name, LogLevel* level) {
  for (const auto& [known, value] : kNames) {
    if (known == name) {
      *level = value;
      return true;
    }
  }
  return false;
}

class Log::Impl {
 public:
  explicit Impl(LogLevel level)
      : logger("docmem", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    logger.set_pattern("%v");
    logger.set_level(SpdlogLevel(level));
    logger.flush_on(spdlog::level::debug);
  }
  spdlog::logger logger;
};

Log::Log(LogLevel level) : impl_(std::make_unique<Impl>(level)) {}
Log::~Log() = default;

void Log::Debug(std::string_view event, Fields fields) { Write(LogLevel::kDebug, event, fields); }
void Log::Info(std::string_view event, Fields fields) { Write(LogLevel::kInfo, event, fields); }
void Log::Warning(std::string_view event, Fields fields) {
  Write(LogLevel::kWarning, event, fields);
}
void Log::Error(std::string_view event, Fields fields) { Write(LogLevel::kError, event, fields); }

std::string Log::Format(LogLevel level, std::string_view event, Fields fields) {
  nlohmann::ordered_json line;
  line["time"] = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone());
  line["level"] = NameOf(level);
  line["event"] = event;
  for (const LogField& field : fields) {
    std::visit([&](const auto& value) { line[std::string(field.key)] = value; }, field.value);
  }
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void Log::Write(LogLevel level, std::string_view event, Fields fields) {
  if (!impl_->logger.should_log(SpdlogLevel(level))) return;
  impl_->logger.log(SpdlogLevel(level), spdlog::string_view_t(Format(level, event, fields)));
}

}  // namespace docmem::server

#include "core/log.hpp"

#include <cstdlib>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "core/diagnostic.hpp"

namespace pipeline::core::log {

namespace {

spdlog::level::level_enum level_from_environment() {
  const char* variable = std::getenv("PIPE_LOG");
  const std::string_view name = variable ? variable : "";
  if (name == "debug" || name == "trace") return spdlog::level::debug;
  if (name == "info") return spdlog::level::info;
  if (name == "off") return spdlog::level::off;
  return spdlog::level::warn;
}

/// Created on first use: most commands never log, and spdlog's registry costs time at the start.
spdlog::logger& logger() {
  static spdlog::logger instance = [] {
    spdlog::logger made("pipe", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made.set_level(level_from_environment());
    made.set_pattern("%H:%M:%S.%e %l: %v");
    made.flush_on(spdlog::level::debug);
    return made;
  }();
  return instance;
}

void write(spdlog::level::level_enum level, std::string_view message) {
  if (logger().should_log(level)) logger().log(level, printable(message));
}

}  // namespace

bool debug_enabled() { return logger().should_log(spdlog::level::debug); }
void debug(std::string_view message) { write(spdlog::level::debug, message); }
void info(std::string_view message) { write(spdlog::level::info, message); }
void warn(std::string_view message) { write(spdlog::level::warn, message); }

}  // namespace pipeline::core::log

#include "core/user_environment.hpp"

#include <unistd.h>

#include <cstdlib>

#include "core/error.hpp"

namespace pipeline::core {

std::string variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? value : "";
}

std::optional<Duration> duration_of_variable(const char* name, Duration least,
                                             const std::string& kind) {
  const auto text = variable(name);
  if (text.empty()) return std::nullopt;
  const auto time = parse_duration(text);
  if (!time || *time < least)
    throw EnvironmentError(std::string(name) + " is '" + text + "', which is not a " + kind,
                           {"write it as `30s` or `5m`"});
  return time;
}

std::string user_and_group() {
  return std::to_string(::geteuid()) + ":" + std::to_string(::getegid());
}

}  // namespace pipeline::core

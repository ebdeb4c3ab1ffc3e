#include "core/user_environment.hpp"

#include <unistd.h>

#include <cstdlib>

namespace pipeline::core {

std::string variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? value : "";
}

std::string user_and_group() {
  return std::to_string(::geteuid()) + ":" + std::to_string(::getegid());
}

}  // namespace pipeline::core

#include "core/process_fields.hpp"

#include "core/file.hpp"

namespace pipeline::core {

std::string process_fields(pid_t pid) {
  const auto text = read_if_file("/proc/" + std::to_string(pid) + "/stat");
  const auto name_end = text.rfind(") ");
  return name_end == std::string::npos ? std::string() : text.substr(name_end + 2);
}

}  // namespace pipeline::core

#include "orchestrators/usage/kernel_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>

#include "core/file.hpp"
#include "core/text.hpp"

namespace pipeline::orchestrators::usage {

namespace {

/// Maximum size in bytes of a program's arguments and variables together (execve(2)).
constexpr std::size_t max_variables_size = 6 << 20;

/// Returns the file's text; of a file with more bytes than `limit`, a beginning of about that size.
std::string beginning_of(const std::filesystem::path& file, std::size_t limit) {
  std::string text;
  const core::Descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  char buffer[4096];
  for (ssize_t count;
       opened && text.size() < limit && (count = ::read(opened.get(), buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(count));
  return text;
}

}  // namespace

std::string kernel_text(const std::filesystem::path& file) {
  return beginning_of(file, std::string::npos);
}

std::string process_variables(const std::filesystem::path& process) {
  return beginning_of(process / "environ", max_variables_size);
}

bool GroupMembership::has(std::string_view controller) const {
  for (const auto each : core::split(controllers, ','))
    if (each == controller) return true;
  return false;
}

std::vector<GroupMembership> group_memberships(const std::filesystem::path& file) {
  std::vector<GroupMembership> found;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    found.push_back({line.substr(first + 1, second - first - 1),
                     std::filesystem::path(line.substr(second + 1)).relative_path()});
  }
  return found;
}

}  // namespace pipeline::orchestrators::usage

#include "orchestrators/usage/process_activity.hpp"

#include <unistd.h>

#include <charconv>
#include <sstream>
#include <string>

#include "orchestrators/usage/kernel_file.hpp"

namespace pipeline::orchestrators::usage {
namespace {

/// Returns the sum of utime, stime, cutime and cstime, fields 14 to 17 of proc_pid_stat(5).
std::uint64_t ticks_in(const std::string& stat) {
  const auto name_end = stat.rfind(") ");
  if (name_end == stat.npos) return 0;
  std::istringstream fields(stat.substr(name_end + 2));
  constexpr int before = 11;  // Fields 3 to 13; the name, field 2, may contain blanks.
  std::string word;
  for (int i = 0; i < before; ++i) fields >> word;
  std::uint64_t sum = 0, ticks = 0;
  for (int i = 0; i < 4 && fields >> ticks; ++i) sum += ticks;
  return sum;
}

std::uint64_t bytes_in(const std::string& io) {
  std::uint64_t sum = 0;
  for (const std::string name : {"rchar: ", "wchar: "})
    if (const auto at = io.find(name); at != io.npos) {
      std::uint64_t count = 0;
      std::from_chars(io.data() + at + name.size(), io.data() + io.size(), count);
      sum += count;
    }
  return sum;
}

}  // namespace

core::Activity activity_of_processes(const std::vector<pid_t>& pids,
                                     const std::filesystem::path& proc) {
  static const auto tick = std::chrono::microseconds(1'000'000 / ::sysconf(_SC_CLK_TCK));
  core::Activity sum;
  for (const auto pid : pids) {
    const auto process = proc / std::to_string(pid);
    sum.cpu += tick * ticks_in(kernel_text(process / "stat"));
    sum.bytes += bytes_in(kernel_text(process / "io"));
  }
  return sum;
}

}  // namespace pipeline::orchestrators::usage

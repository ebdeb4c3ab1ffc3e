#include "store/process_id.hpp"

#include <unistd.h>

#include <filesystem>

#include "core/error.hpp"
#include "core/file.hpp"

namespace pipeline::store {
namespace {

/// Returns when the process started, in ticks since the boot: field 22 of /proc/PID/stat, proc(5).
/// Empty if there is no such process, or only its zombie.
std::string start_ticks(std::int64_t pid) try {
  const auto stat = core::read_file("/proc/" + std::to_string(pid) + "/stat");
  auto at = stat.rfind(')');  // The name in parentheses may contain spaces.
  if (at == std::string::npos || at + 2 >= stat.size() || stat[at + 2] == 'Z' ||
      stat[at + 2] == 'X')
    return "";
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = stat.find(' ', at + 1);
  return at == std::string::npos ? "" : stat.substr(at + 1, stat.find(' ', at + 1) - at - 1);
} catch (const core::EnvironmentError&) {
  return "";
}

/// Identifies the current boot and the PID namespace: containers have process identifiers of their
/// own.
std::string boot() {
  std::error_code error;
  return core::read_file("/proc/sys/kernel/random/boot_id").substr(0, 36) + ":" +
         std::filesystem::read_symlink("/proc/self/ns/pid", error).string();
}

}  // namespace

ProcessId ProcessId::self() { return {getpid(), boot() + ":" + start_ticks(getpid())}; }

bool ProcessId::is_of_this_namespace() const {
  return started.substr(0, started.rfind(':')) == boot();
}
bool ProcessId::is_of_this_boot() const { return started.substr(0, 36) == boot().substr(0, 36); }
bool ProcessId::alive() const {
  return pid > 0 && !started.empty() && started == boot() + ":" + start_ticks(pid);
}

}  // namespace pipeline::store

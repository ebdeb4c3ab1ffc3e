#include "store/process_id.hpp"

#include <unistd.h>

#include <filesystem>

#include "core/file.hpp"
#include "core/process_fields.hpp"
#include "core/text.hpp"

namespace pipeline::store {
namespace {

constexpr std::size_t boot_id_length = 36;  // That of a UUID.

/// Returns when the process started, in ticks since the boot: field 22 of /proc/PID/stat, proc(5).
/// Returns an empty text if the process does not exist or is a zombie.
std::string start_ticks(std::int64_t pid) {
  const auto text = core::process_fields(static_cast<pid_t>(pid));
  if (text.starts_with('Z') || text.starts_with('X')) return "";
  const auto fields = core::split(text, ' ');
  constexpr std::size_t start = 22 - 3;  // process_fields() begins with field 3, the state.
  return fields.size() > start ? std::string(fields[start]) : "";
}

/// Identifies the boot and the PID namespace: containers have process identifiers of their own.
std::string boot() {
  std::error_code error;
  return core::read_file("/proc/sys/kernel/random/boot_id").substr(0, boot_id_length) + ":" +
         std::filesystem::read_symlink("/proc/self/ns/pid", error).string();
}

}  // namespace

ProcessId ProcessId::self() { return {getpid(), boot() + ":" + start_ticks(getpid())}; }

bool ProcessId::is_of_this_namespace() const {
  return started.substr(0, started.rfind(':')) == boot();
}
bool ProcessId::is_of_this_boot() const {
  return started.substr(0, boot_id_length) == boot().substr(0, boot_id_length);
}
bool ProcessId::is_alive() const {
  return pid > 0 && !started.empty() && started == boot() + ":" + start_ticks(pid);
}

}  // namespace pipeline::store

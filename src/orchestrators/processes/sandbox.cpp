#include "orchestrators/processes/sandbox.hpp"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/system_folders.hpp"

namespace pipeline::orchestrators::processes {
namespace {

namespace fs = std::filesystem;

bool is_in(const fs::path& path, const fs::path& folder) {
  const auto [end, rest] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end() || (end->empty() && std::next(end) == folder.end());
}

fs::path real_path(const fs::path& path) {
  std::error_code error;
  const auto real = fs::weakly_canonical(path, error);
  return error ? path : real;
}

}  // namespace

bool Sandbox::is_available() {
  constexpr int first_with_refer = 2;
  static const bool is_there = syscall(SYS_landlock_create_ruleset, nullptr, 0,
                                       LANDLOCK_CREATE_RULESET_VERSION) >= first_with_refer;
  return is_there;
}

Sandbox::Sandbox(const fs::path& hidden, const fs::path& home) {
  const landlock_ruleset_attr handled{.handled_access_fs =
                                          LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_REFER};
  rules_ = core::Descriptor(
      static_cast<int>(syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0)));
  if (!rules_) throw core::system_error("cannot restrict what a step reads (Landlock)", errno);
  // Without this right no rule set lets a file be renamed or linked into another folder.
  add_rule("/", LANDLOCK_ACCESS_FS_REFER);
  const auto pipeline = hidden.empty() ? fs::path() : real_path(hidden);
  for (const auto* name : core::system_folders) allow_except(fs::path("/") / name, pipeline);
  const auto temporary = real_path(core::temporary_folder());
  if (pipeline.empty() || !is_in(pipeline, temporary)) allow(temporary);
  if (home.empty()) return;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(home, none)) {
    const auto name = entry.path().filename().string();
    // R keeps its libraries in ~/R, whose name does not begin with a dot.
    if (name.starts_with('.') || name == "R") allow_except(entry.path(), pipeline);
  }
}

void Sandbox::allow(const fs::path& path) { add_rule(path, LANDLOCK_ACCESS_FS_READ_FILE); }

void Sandbox::add_rule(const fs::path& path, std::uint64_t rights) {
  const core::Descriptor file(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!file) return;
  const landlock_path_beneath_attr rule{.allowed_access = rights, .parent_fd = file.get()};
  syscall(SYS_landlock_add_rule, rules_.get(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

/// Allows the folder. If the hidden folder is in it, allows instead the folder's other entries,
/// without those that are made later.
void Sandbox::allow_except(const fs::path& path, const fs::path& hidden) {
  const auto real = real_path(path);
  if (hidden.empty() || !is_in(hidden, real)) return allow(real);
  if (real == hidden) return;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(real, none)) allow_except(entry.path(), hidden);
}

int Sandbox::enter(int descriptor) {
  if (syscall(SYS_landlock_restrict_self, descriptor, 0) == 0) return 0;
  if (errno != EPERM) return errno;
  // A process without root must first give up gaining rights by exec.
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
      syscall(SYS_landlock_restrict_self, descriptor, 0) == 0)
    return 0;
  return errno;
}

std::vector<fs::path> program_folders(std::string_view path, const fs::path& pipeline,
                                      const fs::path& home) {
  std::vector<fs::path> folders;
  const auto real_pipeline = real_path(pipeline), real_home = real_path(home);
  for (std::size_t from = 0; from <= path.size();) {
    const auto to = std::min(path.find(':', from), path.size());
    const auto folder = real_path(path.substr(from, to - from));
    from = to + 1;
    if (!folder.is_absolute()) continue;
    const auto name = folder.filename();
    const auto prefix = name == "bin" || name == "sbin" ? folder.parent_path() : folder;
    const bool has_data = is_in(real_pipeline, prefix) || is_in(real_home, prefix) || prefix == "/";
    folders.push_back(has_data ? folder : prefix);
  }
  return folders;
}

}  // namespace pipeline::orchestrators::processes

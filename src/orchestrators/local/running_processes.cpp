#include "orchestrators/local/running_processes.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "core/text.hpp"
#include "orchestrators/usage/kernel_file.hpp"
#include "orchestrators/usage/process_waits.hpp"

namespace pipeline::orchestrators::local {

namespace fs = std::filesystem;

std::vector<pid_t> processes_of(const RunningProcess& wanted, const fs::path& proc) {
  std::vector<std::string> marks{"PIPE_RUN_ID=" + wanted.run_id, "PIPE_STEP_NAME=" + wanted.step,
                                 "PIPE_ATTEMPT=" + std::to_string(wanted.number)};
  if (wanted.rank) marks.push_back("RANK=" + std::to_string(*wanted.rank));
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(proc, error)) {
    pid_t pid = 0;
    const auto name = entry.path().filename().string();
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ptr !=
            name.data() + name.size() ||
        pid == getpid())
      continue;
    const auto variables = '\0' + usage::process_variables(entry.path());
    if (std::ranges::all_of(marks, [&](const std::string& mark) {
          return variables.find('\0' + mark + '\0') != variables.npos;
        }))
      found.push_back(pid);
  }
  return found;
}

std::optional<pid_t> first_process_of(const RunningProcess& wanted, const fs::path& proc) {
  auto roots = processes_of(wanted, proc);
  std::ranges::sort(roots);  // A shell that was opened beside the step has a higher number.
  for (const auto pid : std::vector(roots)) {
    const auto tree = usage::process_tree(pid, proc);
    std::erase_if(roots, [&](pid_t other) {
      return other != pid && std::ranges::find(tree, other) != tree.end();
    });
  }
  return roots.empty() ? std::nullopt : std::optional(roots.front());
}

std::vector<core::Descriptor> limit_groups_of(pid_t process, const fs::path& proc,
                                              const fs::path& mounts) {
  std::vector<core::Descriptor> files;
  for (const auto& group : usage::group_memberships(proc / std::to_string(process) / "cgroup")) {
    // LocalOrchestrator names the groups that it makes `pipe-...`.
    if (!group.path.filename().native().starts_with("pipe-")) continue;
    for (const std::string controller : {"", "memory", "cpu"}) {
      if (controller.empty() != group.is_unified() ||
          !(group.is_unified() || group.has(controller)))
        continue;
      const auto file = mounts / controller / group.path / "cgroup.procs";
      files.emplace_back(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
      if (!files.back()) files.pop_back();
    }
  }
  return files;
}

StringMap variables_of_process(pid_t process, const fs::path& proc) {
  StringMap variables;
  const auto text = usage::process_variables(proc / std::to_string(process));
  for (const auto each : core::split(text, '\0'))
    if (const auto at = each.find('='); at != each.npos)
      variables[std::string(each.substr(0, at))] = each.substr(at + 1);
  return variables;
}

}  // namespace pipeline::orchestrators::local

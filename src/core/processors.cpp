#include "core/processors.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <thread>

#include "core/file.hpp"
#include "core/text.hpp"
#include "core/user_environment.hpp"

namespace pipeline::core {
namespace {

namespace fs = std::filesystem;

/// Returns the number of processors on which the scheduler may run this process.
unsigned processors_of_affinity() {
  cpu_set_t set;
  // Fails on machines with more than 1,024 processors.
  if (sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<unsigned>(CPU_COUNT(&set));
  return std::thread::hardware_concurrency();
}

/// Returns the quota in a group's folder, in processors; infinity if it has none.
double quota_of(const fs::path& group) {
  double quota = -1, period = 0;
  if (std::ifstream file(group / "cpu.max"); file) {  // Version 2 of control groups.
    file >> quota >> period;  // `max 100000` stands for no quota; `max` is not read as a number.
  } else {
    std::ifstream(group / "cpu.cfs_quota_us") >> quota;
    std::ifstream(group / "cpu.cfs_period_us") >> period;
  }
  return quota > 0 && period > 0 ? quota / period : HUGE_VAL;
}

/// Returns the least quota of the control groups that this process is in.
double quota(const fs::path& proc, const fs::path& mounts) {
  double least = HUGE_VAL;
  const auto text = read_if_file(proc / "cgroup");
  for (const auto line : lines_of(text)) {
    // `0::/a/b`, or `4:cpu,cpuacct:/a/b` with version 1.
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const auto controllers = split(line.substr(first + 1, second - first - 1), ',');
    const bool is_unified = line.starts_with("0::");
    if (!is_unified && std::ranges::find(controllers, "cpu") == controllers.end()) continue;
    const auto mount = is_unified ? mounts : mounts / "cpu";
    // In a container the path may be that of the host, and only the mount itself then exists.
    for (auto group = (mount / fs::path(line.substr(second + 1)).relative_path());
         group.native().size() >= mount.native().size(); group = group.parent_path())
      least = std::min(least, quota_of(group));
  }
  return least;
}

}  // namespace

unsigned usable_processors(const fs::path& proc, const fs::path& mounts) {
  double count = std::min<double>(processors_of_affinity(), std::ceil(quota(proc, mounts)));
  if (!variable("SLURM_JOB_ID").empty())
    if (const auto granted = std::atoi(variable("SLURM_CPUS_ON_NODE").c_str()); granted > 0)
      count = std::min<double>(count, granted);
  return static_cast<unsigned>(std::max(count, 1.0));
}

}  // namespace pipeline::core

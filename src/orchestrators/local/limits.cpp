#include "orchestrators/local/limits.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <sstream>
#include <thread>

#include "core/error.hpp"
#include "orchestrators/usage/group_usage.hpp"
#include "orchestrators/usage/kernel_file.hpp"
#include "orchestrators/usage/memory_kills.hpp"

namespace pipeline::orchestrators::local {
namespace {

namespace fs = std::filesystem;

bool has_word(const std::string& text, const std::string& word) {
  std::istringstream in(text);
  for (std::string each; in >> each;)
    if (each == word) return true;
  return false;
}

void set(const fs::path& file, const std::string& value) {
  core::Descriptor out(open(file.c_str(), O_WRONLY | O_CLOEXEC));
  if (!out || write(out.get(), value.data(), value.size()) < 0)
    throw core::system_error("cannot write " + value + " to " + file.string(), errno);
}

void set_if_writable(const fs::path& file, const std::string& value) {
  if (access(file.c_str(), W_OK) == 0) set(file, value);
}

bool may_make_groups(const fs::path& folder) {
  return access(folder.c_str(), W_OK) == 0 && access((folder / "cgroup.procs").c_str(), W_OK) == 0;
}

}  // namespace

ControlGroups find_control_groups(const fs::path& proc, const fs::path& mounts) {
  ControlGroups found;
  for (const auto& own : usage::group_memberships(proc)) {
    if (own.is_unified()) {
      // A group that contains processes cannot have groups with limits below it. So the new group
      // is created beside or above this process's own, where the controllers are delegated.
      for (auto path = mounts / own.path; path.native().size() >= mounts.native().size();
           path = path.parent_path()) {
        const auto delegated = usage::kernel_text(path / "cgroup.subtree_control");
        if (!has_word(delegated, "memory") || !may_make_groups(path)) continue;
        found = {
            .unified = true, .memory = path, .cpu = has_word(delegated, "cpu") ? path : fs::path()};
        return found;
      }
    }
    for (auto [name, target] : {std::pair{"memory", &found.memory}, std::pair{"cpu", &found.cpu}})
      if (own.has(name))
        for (const auto& path : {mounts / name / own.path, mounts / name})
          if (target->empty() && may_make_groups(path)) *target = path;
  }
  return found;
}

LimitGroup::LimitGroup(const ControlGroups& where, const std::string& name,
                       std::optional<Bytes> memory, std::optional<double> cpus)
    : unified_(where.unified) {
  auto make = [&](const fs::path& parent) {
    auto folder = parent / name;
    if (!folders_.empty() && folders_.back() == folder) return folder;
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
      throw core::system_error("cannot make the control group " + folder.string(), errno);
    folders_.push_back(folder);
    member_files_.emplace_back(open((folder / "cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
    if (!member_files_.back())
      throw core::system_error("cannot join the control group " + folder.string(), errno);
    return folder;
  };
  try {
    if (memory && !where.memory.empty()) {
      memory_ = make(where.memory);
      auto bytes = std::to_string(*memory);
      if (unified_) {
        set(memory_ / "memory.max", bytes);
        set_if_writable(memory_ / "memory.swap.max", "0");
        set_if_writable(memory_ / "memory.oom.group", "1");
      } else {
        set(memory_ / "memory.limit_in_bytes", bytes);
        set_if_writable(memory_ / "memory.memsw.limit_in_bytes", bytes);
      }
    }
    if (cpus && !where.cpu.empty()) {
      constexpr int period = 100'000;  // Microseconds, the kernel's default.
      auto folder = make(where.cpu);
      constexpr long min_quota = 1000;  // Microseconds; the kernel refuses less.
      auto quota = std::to_string(std::max(min_quota, std::lround(*cpus * period)));
      if (unified_)
        set(folder / "cpu.max", quota + " " + std::to_string(period));
      else
        set(folder / "cpu.cfs_quota_us", quota);
    }
  } catch (...) {
    remove();
    throw;
  }
}

LimitGroup::~LimitGroup() { remove(); }

void LimitGroup::remove() {
  // Killed processes are gone after some milliseconds; a process that cannot be killed is left
  // after a second.
  constexpr int max_tries = 100, quick_tries = 10;
  member_files_.clear();
  for (auto& folder : folders_)
    for (int tries = 0; rmdir(folder.c_str()) != 0 && errno == EBUSY && tries < max_tries;
         ++tries) {
      std::ifstream in(folder / "cgroup.procs");
      for (pid_t pid; in >> pid;) kill(pid, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(tries < quick_tries ? 1 : 10));
    }
  folders_.clear();
}

std::vector<int> LimitGroup::member_files() const {
  std::vector<int> files;
  for (auto& file : member_files_) files.push_back(file.get());
  return files;
}

void LimitGroup::measure(core::Usage& usage) const {
  if (kills().value_or(0) > 0) usage.memory_kills = kills();
  if (memory_.empty()) return;
  const auto peak = usage::GroupUsage({unified_, memory_, {}, {}}).read().peak_memory;
  if (peak) usage.peak_memory = peak;
}

std::optional<std::uint64_t> LimitGroup::kills() const {
  // In version 2, a group that limits only CPU time counts kills, too.
  if (unified_ && !folders_.empty())
    return usage::read_counter(folders_.front() / "memory.events", "oom_kill");
  if (memory_.empty()) return {};
  return usage::read_counter(memory_ / "memory.oom_control", "oom_kill");
}

bool LimitGroup::counts_kills() const { return kills().has_value(); }

std::shared_ptr<LimitGroup> LimitGroups::take(const ControlGroups& where, const std::string& name,
                                              const ResourceSettings& resources) {
  std::erase_if(groups_, [](const auto& known) { return known.second.expired(); });
  auto& known = groups_[name];
  auto group = known.lock();
  if (!group)
    known = group =
        std::make_shared<LimitGroup>(where, name, resources.memory, resources.cpu_count);
  return group;
}

}  // namespace pipeline::orchestrators::local

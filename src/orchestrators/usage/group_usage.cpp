#include "orchestrators/usage/group_usage.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "core/file.hpp"
#include "core/saturating.hpp"
#include "orchestrators/usage/kernel_file.hpp"
#include "orchestrators/usage/memory_kills.hpp"

namespace pipeline::orchestrators::usage {
namespace {

namespace fs = std::filesystem;

core::Descriptor open_to_read(const fs::path& file) {
  return core::Descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
}

/// Reads an open kernel file from its beginning; returns an empty text if its group is gone.
std::string text_again(const core::Descriptor& file) {
  char buffer[4096];
  const auto count = file ? ::pread(file.get(), buffer, sizeof buffer, 0) : 0;
  return count > 0 ? std::string(buffer, static_cast<std::size_t>(count)) : std::string();
}

std::optional<std::uint64_t> number_of(const std::string& text) {
  std::uint64_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  return end.ec == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<std::uint64_t> number_in(const fs::path& file) {
  return number_of(kernel_text(file));
}

/// Adds up the numbers after each occurrence of `word`, such as ` Read ` or `rbytes=`.
std::uint64_t sum_after(const std::string& text, std::string_view word) {
  std::uint64_t sum = 0;
  for (auto at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    std::uint64_t value = 0;
    const auto* digits = text.data() + at + word.size();
    std::from_chars(digits, text.data() + text.size(), value);
    sum += value;
  }
  return sum;
}

/// Returns the size of the file pages that the kernel holds for the group and can drop. The kernel
/// computes the whole file for each reader, which costs more than all other accounts together, so
/// the file is read once.
std::uint64_t cached_bytes(const GroupFolders& group) {
  const auto text = "\n" + kernel_text(group.memory / "memory.stat");
  const auto cache = sum_after(text, group.unified ? "\nfile " : "\ntotal_cache ");
  const auto shared = sum_after(text, group.unified ? "\nshmem " : "\ntotal_shmem ");
  return cache - std::min(cache, shared);
}

const char* memory_in_use(const GroupFolders& group) {
  return group.unified ? "memory.current" : "memory.usage_in_bytes";
}

constexpr const char* bytes_of_version_1 = "blkio.throttle.io_service_bytes";

/// Returns true if the text counts nothing: with version 1, newer kernels write only `Total 0` for
/// a group without a throttled disk, as for a group that has used no disk.
bool counts_no_bytes(const GroupFolders& group, const std::string& text) {
  constexpr std::string_view of_a_disk = " Read ";
  return !group.unified && text.find(of_a_disk) == text.npos &&
         kernel_text(group.all_blocks / bytes_of_version_1).find(of_a_disk) == std::string::npos;
}

void read_blocks(const GroupFolders& group, core::Usage& usage) {
  const auto text = kernel_text(group.blocks / (group.unified ? "io.stat" : bytes_of_version_1));
  if (text.empty() && (group.unified || !fs::exists(group.blocks))) return;
  if (counts_no_bytes(group, text)) return;
  usage.read = sum_after(text, group.unified ? "rbytes=" : " Read ");
  // Version 1 does not count the kernel's own delayed writes for any group.
  if (group.unified) usage.written = sum_after(text, "wbytes=");
}

}  // namespace

GroupFolders find_container_group(const std::string& container, const fs::path& mounts) {
  const std::string scope = "docker-" + container + ".scope";
  const auto find = [&](const fs::path& tree) {
    for (const auto& below : {fs::path("docker") / container, fs::path("system.slice") / scope,
                              fs::path("machine.slice") / ("libpod-" + container + ".scope"),
                              fs::path("libpod_parent") / ("libpod-" + container)})
      if (::access((tree / below / "cgroup.procs").c_str(), R_OK) == 0) return tree / below;
    return fs::path();
  };
  GroupFolders found;
  found.unified = ::access((mounts / "cgroup.controllers").c_str(), R_OK) == 0;
  if (found.unified) {
    found.memory = found.cpu = found.blocks = find(mounts);
  } else {
    found.memory = find(mounts / "memory");
    found.cpu = find(mounts / "cpuacct");
    found.all_blocks = mounts / "blkio";
    found.blocks = find(found.all_blocks);
  }
  return found;
}

std::vector<pid_t> processes_in(const GroupFolders& group) {
  const auto text = kernel_text((group.memory.empty() ? group.cpu : group.memory) / "cgroup.procs");
  std::vector<pid_t> pids;
  for (const char *at = text.data(), *const end = at + text.size(); at < end;) {
    pid_t pid = 0;
    const auto number = std::from_chars(at, end, pid);
    if (number.ec != std::errc()) break;
    at = number.ptr + 1;
    pids.push_back(pid);
  }
  return pids;
}

pid_t first_process(const GroupFolders& group) {
  const auto pids = processes_in(group);
  if (pids.size() == 1) return pids.front();
  for (const auto pid : pids) {
    const auto status = kernel_text("/proc/" + std::to_string(pid) + "/status");
    const auto line = status.find("\nNSpid:");
    if (line == status.npos) continue;
    const auto numbers = status.substr(line + 1, status.find('\n', line + 1) - line - 1);
    if (numbers.ends_with("\t1")) return pid;
  }
  return pids.empty() ? 0 : pids.front();
}

GroupUsage::GroupUsage(GroupFolders folders) : folders_(std::move(folders)) {
  if (folders_.cpu.empty()) return;
  cpu_ = open_to_read(folders_.cpu / (folders_.unified ? "cpu.stat" : "cpuacct.usage"));
  if (folders_.unified) return;
  cpu_user_ = open_to_read(folders_.cpu / "cpuacct.usage_user");
  cpu_system_ = open_to_read(folders_.cpu / "cpuacct.usage_sys");
}

void GroupUsage::sample_cpu() {
  using std::chrono::microseconds;
  if (folders_.unified) {
    const auto text = "\n" + text_again(cpu_);
    if (text.size() == 1) return;
    last_.user = microseconds(sum_after(text, "\nuser_usec "));
    last_.system = microseconds(sum_after(text, "\nsystem_usec "));
    return;
  }
  // Version 1 counts the sum in nanoseconds, but user and system apart only in ticks.
  const auto all = number_of(text_again(cpu_));
  if (!all) return;
  const auto user = number_of(text_again(cpu_user_)).value_or(0);
  const auto system = number_of(text_again(cpu_system_)).value_or(0);
  const auto share =
      user + system == 0 ? 1.0 : static_cast<double>(user) / static_cast<double>(user + system);
  const auto sum = static_cast<std::int64_t>(*all / 1000);
  last_.user = microseconds(static_cast<std::int64_t>(static_cast<double>(sum) * share));
  last_.system = microseconds(sum) - *last_.user;
}

void GroupUsage::raise_peak(const char* memory_file) {
  if (folders_.memory.empty()) return;
  if (const auto held = number_in(folders_.memory / memory_file); held && *held > sampled_peak_)
    sampled_peak_ =
        std::max(sampled_peak_, core::saturating_subtract(*held, cached_bytes(folders_)));
}

void GroupUsage::update(const char* memory_file) {
  sample_cpu();
  if (!folders_.blocks.empty()) read_blocks(folders_, last_);
  raise_peak(memory_file);
  if (folders_.memory.empty()) return;
  const auto kills = read_counter(
      folders_.memory / (folders_.unified ? "memory.events" : "memory.oom_control"), "oom_kill");
  if (kills.value_or(0) > 0) last_.memory_kills = kills;
}

void GroupUsage::sample() { update(memory_in_use(folders_)); }

core::Usage GroupUsage::read() {
  // With version 2, kernels before 5.19 do not have memory.peak.
  const char* peak = folders_.unified ? "memory.peak" : "memory.max_usage_in_bytes";
  const bool has_peak =
      !folders_.memory.empty() && ::access((folders_.memory / peak).c_str(), R_OK) == 0;
  update(has_peak ? peak : memory_in_use(folders_));
  if (sampled_peak_ > 0) last_.peak_memory = sampled_peak_;
  return last_;
}

}  // namespace pipeline::orchestrators::usage

#include "orchestrators/usage/tree_memory.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/file.hpp"
#include "core/saturating.hpp"
#include "orchestrators/usage/process_waits.hpp"

namespace pipeline::orchestrators::usage {
namespace {

namespace fs = std::filesystem;

/// Reading shares of pages takes at most 1/300 of a CPU's time.
constexpr int shares_cost_share = 300;
/// Longest pause between two readings of shares, unless their cost asks for a longer one. The pause
/// doubles with each reading that does not raise the peak.
constexpr std::chrono::seconds quiet_pause{2};
constexpr int max_doublings = 8;
/// Delay of a reading while the tree changes. The first worker is often seen before the others
/// start, and reading its shares alone would delay the reading that includes them.
constexpr std::chrono::milliseconds delay_after_change{200};
constexpr std::size_t largest_tree = 4096, full_text_size = 1 << 16;

/// Returns nothing if the file cannot be opened: the process has ended, or belongs to another user.
std::optional<std::string> opened_text(const fs::path& file) {
  const core::Descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!opened) return std::nullopt;
  std::string text;
  char buffer[4096];
  for (ssize_t count; (count = ::read(opened.get(), buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(count));
    if (text.size() >= full_text_size) break;
  }
  return text;
}

/// Calls `use` for each whole number of the text.
template <class Use>
void each_number(std::string_view text, Use use) {
  for (const char *at = text.data(), *const end = at + text.size(); at < end;) {
    std::uint64_t number = 0;
    const auto read = std::from_chars(at, end, number);
    if (read.ec == std::errc()) use(number);
    at = std::max(read.ptr, at + 1);
  }
}

/// Appends the children of a process to the tree. Returns false if the kernel does not show lists
/// of children.
bool append_children(pid_t parent, const fs::path& proc, std::vector<pid_t>& tree) {
  std::error_code gone;
  bool has_list = false;
  const auto threads = proc / std::to_string(parent) / "task";
  for (fs::directory_iterator thread(threads, gone), end; !gone && thread != end;
       thread.increment(gone)) {
    const auto children = opened_text(thread->path() / "children");
    if (!children) continue;
    has_list = true;
    each_number(*children, [&](std::uint64_t pid) {
      if (tree.size() < largest_tree) tree.push_back(static_cast<pid_t>(pid));
    });
  }
  return has_list;
}

/// Returns the number of bytes in the line with `word`, such as `Pss_Anon:  12 kB`; nothing if
/// there is no such line.
std::optional<std::uint64_t> bytes_at(const std::optional<std::string>& text,
                                      std::string_view word) {
  const auto line = text ? text->find(word) : std::string::npos;
  if (line == std::string::npos) return std::nullopt;
  const auto digits = text->find_first_not_of(" \t", line + word.size());
  std::uint64_t kibibytes = 0;
  if (digits != std::string::npos)
    std::from_chars(text->data() + digits, text->data() + text->size(), kibibytes);
  return kibibytes * 1024;
}

std::chrono::nanoseconds cpu_time_of_thread() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

std::vector<pid_t> descendants_of(pid_t root, const fs::path& proc) {
  std::vector<pid_t> tree{root};
  for (std::size_t i = 0; i < tree.size(); ++i)
    if (!append_children(tree[i], proc, tree) && i == 0) return process_tree(root, proc);
  return tree;
}

ProcessMemory resident_memory_of(pid_t process, const fs::path& proc) {
  const auto text = opened_text(proc / std::to_string(process) / "statm");
  // Numbers of pages: of its address space, in memory, and the part of these that are shared memory
  // or mapped files (proc_pid_statm(5)).
  std::array<std::uint64_t, 3> pages{};
  std::size_t field = 0;
  each_number(text.value_or(""), [&](std::uint64_t number) {
    if (field < pages.size()) pages[field++] = number;
  });
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return {.data = core::saturating_subtract(pages[1], pages[2]) * page, .mapped = pages[2] * page};
}

ProcessMemory proportional_memory_of(pid_t process, const fs::path& proc) {
  const auto folder = proc / std::to_string(process);
  const auto text = opened_text(folder / "smaps_rollup");
  const auto data = bytes_at(text, "\nPss_Anon:"), shared = bytes_at(text, "\nPss_Shmem:");
  if (!data || !shared) return resident_memory_of(process, proc);
  // From the same text as the shares, because the process can grow between two readings.
  const auto held = bytes_at(text, "\nAnonymous:");
  const auto files = bytes_at(opened_text(folder / "status"), "\nRssFile:");
  return {.data = *data,
          .data_in_common = core::saturating_subtract(held.value_or(0), *data),
          .shared = *shared,
          .mapped = files.value_or(0)};
}

void TreeMemory::read_shares(std::vector<pid_t> tree) {
  const auto start = cpu_time_of_thread();
  ProcessMemory all;
  for (const auto process : tree) {
    const auto one = proportional_memory_of(process, proc_);
    all.data += one.data;
    all.data_in_common += one.data_in_common;
    all.shared += one.shared;
    all.mapped = std::max(all.mapped, one.mapped);
  }
  std::ranges::sort(tree);
  known_ = std::move(tree);
  in_common_ = all.data_in_common;
  beside_data_ = all.shared + all.mapped;
  const auto sum = all.data + beside_data_;
  quiet_looks_ = sum > peak_ ? 0 : std::min(quiet_looks_ + 1, max_doublings);
  peak_ = std::max(peak_, sum);
  const auto pause = (cpu_time_of_thread() - start) * shares_cost_share;
  const auto longer = std::min<std::chrono::nanoseconds>(pause * (1 << quiet_looks_), quiet_pause);
  next_shares_ = std::chrono::steady_clock::now() + std::max({between_shares_, pause, longer});
}

std::chrono::nanoseconds TreeMemory::sample() {
  const auto start = cpu_time_of_thread();
  auto tree = descendants_of(root_, proc_);
  std::uint64_t known_data = 0, resident = 0;
  if (tree.size() > 1)
    for (const auto process : tree) {
      const auto memory = resident_memory_of(process, proc_);
      if (std::ranges::binary_search(known_, process)) known_data += memory.data;
      resident += memory.data + memory.mapped;
    }
  const auto cost = cpu_time_of_thread() - start;
  const bool has_changed = tree != std::exchange(last_, tree);
  if (resident <= peak_) return cost;  // Some pages count twice, so the tree uses even less.
  const auto delay = has_changed ? delay_after_change : std::chrono::milliseconds(0);
  if (std::chrono::steady_clock::now() >= next_shares_ + delay)
    read_shares(std::move(tree));
  else if (!known_.empty())
    peak_ = std::max(peak_, core::saturating_subtract(known_data, in_common_) + beside_data_);
  return cost;
}

}  // namespace pipeline::orchestrators::usage

#include "orchestrators/tree_memory.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

#include "core/file.hpp"
#include "orchestrators/process_waits.hpp"

namespace pipeline::orchestrators {
namespace {

namespace fs = std::filesystem;

/// The shares of pages are read in one of so many parts of a CPU's time.
constexpr int shares_cost_share = 600;
constexpr std::size_t largest_tree = 4096, longest_text = 1 << 16;

/// Returns nothing if the file cannot be opened: the process has ended, or belongs to another user.
std::optional<std::string> opened_text(const fs::path& file) {
  const core::Descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!opened) return std::nullopt;
  std::string text;
  char buffer[4096];
  for (ssize_t count; (count = ::read(opened.get(), buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(count));
    if (text.size() >= longest_text) break;
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

/// @return false if the kernel keeps no such lists
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

std::uint64_t resident_memory_of(pid_t process, const fs::path& proc) {
  const auto text = opened_text(proc / std::to_string(process) / "statm");
  std::uint64_t pages = 0;
  std::size_t field = 0;
  each_number(text.value_or(""), [&](std::uint64_t number) {
    if (field++ == 1) pages = number;
  });
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::uint64_t shared_out_memory_of(pid_t process, const fs::path& proc) {
  const auto text = opened_text(proc / std::to_string(process) / "smaps_rollup");
  constexpr std::string_view word = "\nPss:";
  const auto line = text ? text->find(word) : std::string::npos;
  if (line == std::string::npos) return resident_memory_of(process, proc);
  const auto digits = text->find_first_not_of(' ', line + word.size());
  std::uint64_t kibibytes = 0;
  if (digits != std::string::npos)
    std::from_chars(text->data() + digits, text->data() + text->size(), kibibytes);
  return kibibytes * 1024;
}

void TreeMemory::read_shares(const std::vector<pid_t>& tree, std::uint64_t resident) {
  const auto start = cpu_time_of_thread();
  std::uint64_t sum = 0;
  for (const auto process : tree) sum += shared_out_memory_of(process, proc_);
  next_shares_ =
      std::chrono::steady_clock::now() + (cpu_time_of_thread() - start) * shares_cost_share;
  known_ = tree;
  in_common_ = resident - std::min(resident, sum);
  peak_ = std::max(peak_, sum);
}

std::chrono::nanoseconds TreeMemory::sample() {
  const auto start = cpu_time_of_thread();
  const auto tree = descendants_of(root_, proc_);
  std::uint64_t resident = 0;
  if (tree.size() > 1)
    for (const auto process : tree) resident += resident_memory_of(process, proc_);
  const auto cost = cpu_time_of_thread() - start;
  if (resident <= peak_) return cost;  // Without what they have in common it is even less.
  if (std::chrono::steady_clock::now() >= next_shares_)
    read_shares(tree, resident);
  else if (tree == known_)
    peak_ = std::max(peak_, resident - std::min(resident, in_common_));
  return cost;
}

}  // namespace pipeline::orchestrators

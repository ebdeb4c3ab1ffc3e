#include "orchestrators/usage/process_waits.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "core/file.hpp"
#include "core/rank_variables.hpp"
#include "core/shell_prelude.hpp"

namespace pipeline::orchestrators::usage {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_file_bytes = 4096, max_variables = 256 << 10;
constexpr std::size_t max_command = 80, max_lines = 32;

/// Returns the text of a file in /proc; empty if the process has ended or hides it.
std::string proc_text(const fs::path& file, std::size_t max_bytes = max_file_bytes) {
  return core::read_untrusted_file(file, max_bytes).value_or("");
}

std::vector<pid_t> numbers_below(const fs::path& folder) {
  std::vector<pid_t> numbers;
  std::error_code error;
  for (fs::directory_iterator each(folder, error), end; !error && each != end;
       each.increment(error)) {
    const auto name = each->path().filename().string();
    pid_t number = 0;
    const auto read = std::from_chars(name.data(), name.data() + name.size(), number);
    if (read.ec == std::errc() && read.ptr == name.data() + name.size()) numbers.push_back(number);
  }
  return numbers;
}

struct ThreadState {
  char state = '?';
  pid_t parent = 0;
};

/// Reads `PID (NAME) STATE PARENT ...`; the name may hold blanks and parentheses.
std::optional<ThreadState> state_in(const std::string& stat) {
  const auto end = stat.rfind(") ");
  if (end == std::string::npos || end + 4 >= stat.size()) return std::nullopt;
  ThreadState found;
  found.state = stat[end + 2];
  std::from_chars(stat.data() + end + 4, stat.data() + stat.size(), found.parent);
  return found;
}

/// Returns the kernel's function that a thread waits in; empty if it is not shown.
std::string function_in(const fs::path& thread) {
  auto function = proc_text(thread / "wchan");
  if (!function.empty() && function != "0") return function;
  // Some kernels show the function only to root, in `[<0>] hrtimer_nanosleep+0x74/0xf0`.
  const auto stack = proc_text(thread / "stack");
  const auto begin = stack.find("] "), end = stack.find('+');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  return stack.substr(begin + 2, end - begin - 2);
}

/// Returns the arguments without the prelude that pipe puts before a shell command, or the name of
/// a process without arguments.
std::string command_in(const fs::path& process) {
  auto text = proc_text(process / "cmdline");
  if (text.empty()) text = proc_text(process / "comm");
  while (!text.empty() && (text.back() == '\0' || text.back() == '\n')) text.pop_back();
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  for (const auto prelude : {core::bash_prelude, core::sh_prelude})
    if (const auto at = text.find(prelude); at != text.npos) text.erase(at, prelude.size());
  return text.substr(0, max_command);
}

/// Returns ` (rank 3)` for a process of a node with several ranks.
std::string rank_in(const fs::path& process) {
  const auto rank = core::rank_in_variables(proc_text(process / "environ", max_variables));
  return rank < 0 ? "" : " (rank " + std::to_string(rank) + ")";
}

}  // namespace

std::string wait_text(char state, const std::string& function, bool is_plural) {
  const auto verb = [&](const char* word) { return word + std::string(is_plural ? "" : "s"); };
  const bool is_known = !function.empty() && function != "0" && function != "-";
  const auto in = is_known ? " in " + function : "";
  switch (state) {
    case 'R': return verb("run");
    case 'S':
    case 'I': return verb("sleep") + in;
    case 'D': return verb("wait") + " for a device" + (is_known ? ", in " + function : "");
    case 'T':
    case 't': return is_plural ? "are stopped" : "is stopped";
    case 'Z': return is_plural ? "have ended" : "has ended, and is not waited for";
    default: return verb("wait") + in;
  }
}

std::string wait_line(const std::string& process, const ProcessWaits& waits) {
  std::size_t threads = 0;
  for (const auto& [wait, count] : waits) threads += count;
  std::string text;
  for (const auto& [wait, count] : waits) {
    if (!text.empty()) text += ", ";
    if (threads > 1) text += std::to_string(count) + (count == 1 ? " thread " : " threads ");
    text += wait_text(wait.first, wait.second, count > 1);
  }
  return process + ": " + text;
}

std::vector<pid_t> process_tree(pid_t root, const fs::path& proc) {
  std::multimap<pid_t, pid_t> children;
  for (const auto pid : numbers_below(proc))
    if (const auto found = state_in(proc_text(proc / std::to_string(pid) / "stat")))
      children.emplace(found->parent, pid);
  std::vector<pid_t> tree{root};
  for (std::size_t i = 0; i < tree.size(); ++i) {
    const auto [first, last] = children.equal_range(tree[i]);
    for (auto child = first; child != last; ++child) tree.push_back(child->second);
  }
  return tree;
}

std::vector<std::string> waits_of_processes(const std::vector<pid_t>& pids, const fs::path& proc) {
  std::vector<std::string> lines;
  for (const auto pid : pids) {
    const auto process = proc / std::to_string(pid);
    ProcessWaits waits;
    for (const auto thread : numbers_below(process / "task")) {
      const auto folder = process / "task" / std::to_string(thread);
      const auto found = state_in(proc_text(folder / "stat"));
      if (!found) continue;
      ++waits[{found->state, function_in(folder)}];
    }
    if (waits.empty()) continue;
    const auto named = std::to_string(pid) + " " + command_in(process) + rank_in(process);
    lines.push_back(wait_line(named, waits));
    if (lines.size() == max_lines) break;
  }
  return lines;
}

}  // namespace pipeline::orchestrators::usage

#include "orchestrators/tree_memory.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "core/file.hpp"
#include "orchestrators/process_waits.hpp"

namespace pipeline::orchestrators {
namespace {

namespace fs = std::filesystem;

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

std::uint64_t resident_memory_of(const fs::path& process) {
  const auto text = opened_text(process / "statm");
  std::uint64_t pages = 0;
  std::size_t field = 0;
  each_number(text.value_or(""), [&](std::uint64_t number) {
    if (field++ == 1) pages = number;
  });
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

std::vector<pid_t> descendants_of(pid_t root, const fs::path& proc) {
  std::vector<pid_t> tree{root};
  for (std::size_t i = 0; i < tree.size(); ++i)
    if (!append_children(tree[i], proc, tree) && i == 0) return process_tree(root, proc);
  return tree;
}

std::uint64_t memory_of(pid_t process, const fs::path& proc) {
  const auto folder = proc / std::to_string(process);
  const auto text = opened_text(folder / "smaps_rollup");
  constexpr std::string_view word = "\nPss:";
  const auto line = text ? text->find(word) : std::string::npos;
  if (line == std::string::npos) return resident_memory_of(folder);
  const auto digits = text->find_first_not_of(' ', line + word.size());
  std::uint64_t kibibytes = 0;
  if (digits != std::string::npos)
    std::from_chars(text->data() + digits, text->data() + text->size(), kibibytes);
  return kibibytes * 1024;
}

void TreeMemory::sample() {
  const auto tree = descendants_of(root_, proc_);
  if (tree.size() < 2) return;
  std::uint64_t sum = 0;
  for (const auto process : tree) sum += memory_of(process, proc_);
  peak_ = std::max(peak_, sum);
}

}  // namespace pipeline::orchestrators

#include "agent/waits.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "agent/process_tree.hpp"
#include "core/rank_variables.hpp"
#include "core/shell_prelude.hpp"

namespace pipeline::agent {
namespace {

constexpr std::size_t max_processes = 4 << 20;  ///< The kernel's own limit (PID_MAX_LIMIT).
constexpr std::size_t max_threads = 1024, max_kinds = 8;
constexpr std::size_t max_name = 64, max_command = 80, max_rank_variables = 256 << 10;

/// Threads of a process with the same state and kernel function.
struct Kind {
  char state;
  char function[max_name];
  unsigned threads;
};

/// Reads a file in /proc without its last line's end. Returns the number of bytes.
std::size_t read_proc(const char* path, char* text, std::size_t size) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t count = file < 0 ? 0 : read(file, text, size - 1);
  if (file >= 0) close(file);
  std::size_t length = count > 0 ? static_cast<std::size_t>(count) : 0;
  while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == '\0')) --length;
  text[length] = '\0';
  return length;
}

/// Reads state and parent of `PID (NAME) STATE PARENT ...`; the name may contain any characters.
bool read_stat(const char* path, char& state, pid_t& parent) {
  char text[512];
  read_proc(path, text, sizeof text);
  const char* name_end = strrchr(text, ')');
  if (!name_end || strlen(name_end) < 5) return false;
  state = name_end[2];
  parent = static_cast<pid_t>(strtol(name_end + 4, nullptr, 10));
  return true;
}

/// Calls `use` for each entry of the folder that is a number, at most `limit` times.
template <class Use>
void each_number(const char* folder, std::size_t limit, Use use) {
  DIR* const entries = opendir(folder);
  while (const dirent* entry = entries ? readdir(entries) : nullptr) {
    const long number = strtol(entry->d_name, nullptr, 10);
    if (number <= 0) continue;
    if (limit-- == 0) break;
    use(static_cast<pid_t>(number));
  }
  if (entries) closedir(entries);
}

/// Returns the descendants of this process in the order of their numbers, without those left out
/// and the descendants of these.
std::vector<pid_t> find_descendants(std::initializer_list<pid_t> left_out) {
  std::vector<ProcessParent> all;
  each_number("/proc", max_processes, [&](pid_t pid) {
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    pid_t parent = 0;
    for (const pid_t other : left_out)
      if (pid == other) return;
    if (read_stat(path, state, parent)) all.push_back({pid, parent});
  });
  return descendants_of(getpid(), std::move(all));
}

/// Finds kinds of waits and returns their number; kinds beyond the maximum count as the last.
std::size_t find_kinds(pid_t process, Kind* kinds) {
  std::size_t count = 0;
  char folder[64];
  snprintf(folder, sizeof folder, "/proc/%d/task", process);
  each_number(folder, max_threads, [&](pid_t thread) {
    Kind found{};
    found.threads = 1;
    char path[128];
    pid_t parent = 0;
    snprintf(path, sizeof path, "%s/%d/stat", folder, thread);
    if (!read_stat(path, found.state, parent)) return;
    snprintf(path, sizeof path, "%s/%d/wchan", folder, thread);
    read_proc(path, found.function, sizeof found.function);
    std::size_t i = 0;
    while (i < count &&
           (kinds[i].state != found.state || strcmp(kinds[i].function, found.function) != 0))
      ++i;
    if (i == max_kinds) --i;
    if (i == count)
      kinds[count++] = found;
    else
      ++kinds[i].threads;
  });
  return count;
}

char rank_variables[max_rank_variables];  // Too large for the stack.

/// Returns the rank of a process on a node with several ranks; -1 for any other process.
long rank_of(pid_t process) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/environ", process);
  std::size_t size = 0;
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  for (ssize_t more = 1; file >= 0 && more > 0 && size < sizeof rank_variables;) {
    more = read(file, rank_variables + size, sizeof rank_variables - size);
    if (more > 0) size += static_cast<std::size_t>(more);
  }
  if (file >= 0) close(file);
  return core::rank_in_variables({rank_variables, size});
}

/// Writes a process; returns the number of bytes, 0 if there is no space or the process has ended.
std::size_t write_process(pid_t process, char* text, std::size_t size) {
  Kind kinds[max_kinds];
  const std::size_t count = find_kinds(process, kinds);
  if (count == 0) return 0;
  // Space also for the longer of the preludes that `pipe` puts before the user's command: both are
  // removed below.
  char path[64], command[max_command + core::bash_prelude.size()];
  snprintf(path, sizeof path, "/proc/%d/cmdline", process);
  std::size_t length = read_proc(path, command, sizeof command);
  if (length == 0) {
    snprintf(path, sizeof path, "/proc/%d/comm", process);
    length = read_proc(path, command, sizeof command);
  }
  for (std::size_t i = 0; i < length; ++i)
    if (static_cast<unsigned char>(command[i]) < 0x20 || command[i] == 0x7f) command[i] = ' ';
  for (const auto prelude : {core::bash_prelude, core::sh_prelude}) {
    const auto at = std::string_view(command, length).find(prelude);
    if (at == std::string_view::npos) continue;
    length -= prelude.size();
    memmove(command + at, command + at + prelude.size(), length - at + 1);
  }
  command[max_command - 1] = '\0';
  std::size_t end = 0;
  const auto put = [&](const char* format, auto... values) {
    if (end < size)
      end += static_cast<std::size_t>(snprintf(text + end, size - end, format, values...));
  };
  put("P%d %s", process, command);
  if (const long rank = rank_of(process); rank >= 0) put(" (rank %ld)", rank);
  for (std::size_t i = 0; i < count; ++i)
    put("\t%c%u %s", kinds[i].state, kinds[i].threads, kinds[i].function);
  return end < size ? end : 0;
}

/// Returns the sum of utime, stime, cutime and cstime in clock ticks: fields 14 to 17 of
/// proc_pid_stat(5).
unsigned long ticks_in(const char* stat) {
  const char* at = strrchr(stat, ')');  // The end of the second field, the name.
  for (int field = 2; at && field < 14; ++field) at = strchr(at + 1, ' ');
  unsigned long sum = 0;
  for (int i = 0; at && i < 4; ++i) {
    char* end = nullptr;
    sum += strtoul(at, &end, 10);
    at = end;
  }
  return sum;
}

}  // namespace

core::Activity activity_of_descendants(std::initializer_list<pid_t> left_out) {
  const auto tick = std::chrono::microseconds(1'000'000 / sysconf(_SC_CLK_TCK));
  core::Activity sum;
  for (const pid_t process : find_descendants(left_out)) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    read_proc(path, text, sizeof text);
    sum.cpu += tick * ticks_in(text);
    snprintf(path, sizeof path, "/proc/%d/io", process);
    read_proc(path, text, sizeof text);
    for (const char* name : {"rchar: ", "wchar: "})
      if (const char* found = strstr(text, name))
        sum.bytes += strtoull(found + strlen(name), nullptr, 10);
  }
  return sum;
}

unsigned signal_descendants(int signal, std::initializer_list<pid_t> left_out) {
  unsigned signalled = 0;
  for (const pid_t process : find_descendants(left_out))
    if (kill(process, signal) == 0) ++signalled;
  return signalled;
}

std::size_t write_waits(char* text, std::initializer_list<pid_t> left_out) {
  std::size_t end = 0;
  for (const pid_t process : find_descendants(left_out)) {
    if (end + 1 >= max_waits) break;
    const std::size_t begin = end == 0 ? 0 : end + 1;
    const std::size_t length = write_process(process, text + begin, max_waits - begin);
    if (length == 0) continue;
    if (begin > 0) text[begin - 1] = '\t';
    end = begin + length;
  }
  return end;
}

}  // namespace pipeline::agent

#include "agent/usage.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace pipeline::agent {
namespace {

using Number = unsigned long long;

constexpr long thousand = 1000, million = 1'000'000;
// Milliseconds. As for local containers, there is a sample every tenth of a second, and later
// whenever a hundredth of the step's running time has passed.
constexpr long min_pause = 100, max_pause = 10'000, pause_share = 100;

long milliseconds_between(const timespec& from, const timespec& to) {
  return (to.tv_sec - from.tv_sec) * thousand + (to.tv_nsec - from.tv_nsec) / million;
}

timespec now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time;
}

/// Reads a file that the kernel generates; the text is empty if the file does not exist.
template <std::size_t size>
void read_text(const char* path, char (&text)[size]) {
  std::size_t length = 0;
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  for (ssize_t count; file >= 0 && length < size - 1 &&
                      (count = read(file, text + length, size - 1 - length)) > 0;)
    length += static_cast<std::size_t>(count);
  if (file >= 0) close(file);
  text[length] = '\0';
}

Number number_in(const char* path) {
  char text[32];
  read_text(path, text);
  return strtoull(text, nullptr, 10);
}

/// Returns the number after `name` and a blank at the beginning of a line; 0 if there is none.
Number counter(const char* text, const char* name) {
  const std::size_t length = strlen(name);
  for (const char* line = text; line; line = strchr(line, '\n')) {
    if (*line == '\n') ++line;
    if (strncmp(line, name, length) == 0 && line[length] == ' ')
      return strtoull(line + length, nullptr, 10);
  }
  return 0;
}

Number difference(Number a, Number b) { return a > b ? a - b : 0; }

/// Returns the bytes of files that the kernel caches for the group and can drop.
Number cached_bytes(bool is_unified) {
  char text[8192];
  read_text(is_unified ? "/sys/fs/cgroup/memory.stat" : "/sys/fs/cgroup/memory/memory.stat", text);
  return is_unified ? difference(counter(text, "file"), counter(text, "shmem"))
                    : difference(counter(text, "total_cache"), counter(text, "total_shmem"));
}

Number microseconds(const timeval& time) {
  return static_cast<Number>(time.tv_sec) * million + static_cast<Number>(time.tv_usec);
}

}  // namespace

UsageMeter::UsageMeter(bool has_own_group)
    : has_own_group_(has_own_group),
      is_unified_(access("/sys/fs/cgroup/cgroup.controllers", R_OK) == 0),
      start_(now()),
      next_(start_) {}

int UsageMeter::sample() {
  if (!has_own_group_) return -1;
  const auto time = now();
  const long left = milliseconds_between(time, next_);
  if (left > 0) return static_cast<int>(left);
  sample_memory(false);
  long pause = milliseconds_between(start_, time) / pause_share;
  pause = pause < min_pause ? min_pause : pause > max_pause ? max_pause : pause;
  next_ = time;
  next_.tv_sec += pause / thousand;
  next_.tv_nsec += pause % thousand * million;
  if (next_.tv_nsec >= thousand * million) {
    ++next_.tv_sec;
    next_.tv_nsec -= thousand * million;
  }
  return static_cast<int>(pause);
}

/// Records the memory in use without cached files, which the kernel's own peak includes.
void UsageMeter::sample_memory(bool at_end) {
  const auto used = number_in(is_unified_ ? "/sys/fs/cgroup/memory.current"
                                          : "/sys/fs/cgroup/memory/memory.usage_in_bytes");
  const auto cached = cached_bytes(is_unified_);
  if (const auto held = difference(used, cached); held > peak_) peak_ = held;
  if (!at_end) return;
  // Kernels before 5.19 lack memory.peak in version 2.
  const auto kernel_peak =
      number_in(is_unified_ ? "/sys/fs/cgroup/memory.peak"
                            : "/sys/fs/cgroup/memory/memory.max_usage_in_bytes");
  if (const auto held = difference(kernel_peak, cached); held > peak_) peak_ = held;
}

void UsageMeter::add(const rusage& used) {
  constexpr Number block = 512, kilobyte = 1024;
  user_ += microseconds(used.ru_utime);
  system_ += microseconds(used.ru_stime);
  read_ += static_cast<Number>(used.ru_inblock) * block;
  written_ += static_cast<Number>(used.ru_oublock) * block;
  const auto resident = static_cast<Number>(used.ru_maxrss) * kilobyte;
  if (resident > largest_) largest_ = resident;
}

std::size_t UsageMeter::write(char* text, const GpuWatch& gpus) {
  const auto running = milliseconds_between(start_, now());
  Number kills = 0;
  if (has_own_group_) {
    sample_memory(true);
    char counts[512];
    read_text(
        is_unified_ ? "/sys/fs/cgroup/memory.events" : "/sys/fs/cgroup/memory/memory.oom_control",
        counts);
    kills = counter(counts, "oom_kill");
  }
  int size =
      snprintf(text, max_usage,
               "{\"running_ms\":%ld,\"user_us\":%llu,\"system_us\":%llu,\"peak_memory\":%llu,"
               "\"read\":%llu,\"written\":%llu",
               running, user_, system_, peak_ == 0 ? largest_ : peak_, read_, written_);
  if (size > 0 && kills > 0) size += snprintf(text + size, 48, ",\"memory_kills\":%llu", kills);
  if (size <= 0) return 0;
  auto length = static_cast<std::size_t>(size);
  length += gpus.write(text + length, max_usage - length - 1);
  text[length++] = '}';
  return length;
}

}  // namespace pipeline::agent

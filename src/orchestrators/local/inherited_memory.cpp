#include "orchestrators/local/inherited_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <string_view>

namespace pipeline::orchestrators {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool is_sanitized = true;
#elif defined(__has_feature)
constexpr bool is_sanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool is_sanitized = false;
#endif

/// Bytes around errno that are kept: the thread's variables lie there.
constexpr std::uintptr_t margin = 1 << 20;

/// One line of /proc/self/maps: `BEGIN-END rwxp OFFSET DEVICE INODE   NAME`.
struct Mapping {
  std::uintptr_t begin = 0, end = 0;
  std::string_view rights, name;
  bool has_file = false;
};

std::uintptr_t hexadecimal(std::string_view& text) {
  std::uintptr_t value = 0;
  for (; !text.empty(); text.remove_prefix(1)) {
    const char c = text.front();
    if (c >= '0' && c <= '9')
      value = value * 16 + static_cast<std::uintptr_t>(c - '0');
    else if (c >= 'a' && c <= 'f')
      value = value * 16 + static_cast<std::uintptr_t>(c - 'a' + 10);
    else
      break;
  }
  return value;
}

std::string_view next_word(std::string_view& text) {
  const auto begin = text.find_first_not_of(' ');
  if (begin == text.npos) return {};
  const auto end = text.find(' ', begin);
  const auto word = text.substr(begin, end == text.npos ? text.npos : end - begin);
  text.remove_prefix(end == text.npos ? text.size() : end);
  return word;
}

Mapping mapping_of(std::string_view line) {
  Mapping found;
  found.begin = hexadecimal(line);
  if (!line.empty()) line.remove_prefix(1);
  found.end = hexadecimal(line);
  found.rights = next_word(line);
  next_word(line);
  next_word(line);
  found.has_file = next_word(line) != "0";
  found.name = next_word(line);
  return found;
}

void drop(std::uintptr_t begin, std::uintptr_t end) {
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

/// Drops a mapping but for the pages around an address in it.
void drop_around(const Mapping& mapping, std::uintptr_t kept) {
  if (kept < mapping.begin || kept >= mapping.end) return drop(mapping.begin, mapping.end);
  constexpr std::uintptr_t page = 1 << 16;  // A multiple of each architecture's.
  const auto before = (kept - mapping.begin > margin ? kept - margin : mapping.begin) / page * page;
  const auto after = mapping.end - kept > margin ? (kept + margin) / page * page : mapping.end;
  drop(mapping.begin, before);
  drop(after, mapping.end);
}

class Mappings {
 public:
  void take(std::string_view line) {
    const auto mapping = mapping_of(line);
    // What follows a file directly are the program's or a library's own variables.
    const bool are_variables = mapping.begin == end_of_file_;
    if (mapping.has_file) end_of_file_ = mapping.end;
    if (mapping.rights.size() != 4 || mapping.rights[3] != 'p') return;
    if (mapping.has_file) {
      // Pages of code are read again from the file; what can be written has been.
      if (mapping.rights == "r-xp") drop(mapping.begin, mapping.end);
      return;
    }
    const bool is_heap = mapping.name == "[heap]" || mapping.name.empty();
    const auto stack = reinterpret_cast<std::uintptr_t>(&mapping);
    const bool has_stack = stack >= mapping.begin && stack < mapping.end;
    if (is_heap && !are_variables && !has_stack && mapping.rights[1] == 'w')
      drop_around(mapping, reinterpret_cast<std::uintptr_t>(&errno));
  }

 private:
  std::uintptr_t end_of_file_ = 0;
};

}  // namespace

void drop_inherited_memory() {
  if (is_sanitized) return;
  const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  Mappings mappings;
  std::array<char, 8192> text;
  std::size_t size = 0;
  for (ssize_t got; (got = read(file, text.data() + size, text.size() - size)) > 0;) {
    size += static_cast<std::size_t>(got);
    std::string_view all(text.data(), size);
    for (auto end = all.find('\n'); end != all.npos; end = all.find('\n')) {
      mappings.take(all.substr(0, end));
      all.remove_prefix(end + 1);
    }
    if (all.size() == text.size()) break;  // No path is so long.
    std::copy(all.begin(), all.end(), text.begin());
    size = all.size();
  }
  close(file);
  const int peak = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (peak < 0) return;
  [[maybe_unused]] const auto written = write(peak, "5", 1);  // proc(5): resets the peak.
  close(peak);
}

}  // namespace pipeline::orchestrators

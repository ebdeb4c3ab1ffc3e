#include "serve/log_part.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace pipeline::serve {
namespace {

std::string read_at(const core::Descriptor& file, std::uint64_t from, std::size_t max_bytes) {
  std::string text(max_bytes, '\0');
  std::size_t got = 0;
  while (got < max_bytes) {
    const auto count =
        ::pread(file.get(), text.data() + got, max_bytes - got, static_cast<off_t>(from + got));
    if (count <= 0) break;
    got += static_cast<std::size_t>(count);
  }
  text.resize(got);
  return text;
}

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

constexpr std::size_t max_character_length = 4;  // Bytes of a character in UTF-8.

/// Removes an incomplete last character, unless the text has no other.
void cut_character(std::string& text) {
  for (std::size_t back = 1; back < max_character_length && back <= text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if (continues_character(static_cast<char>(byte))) continue;
    const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    if (length > back && back < text.size()) text.resize(text.size() - back);
    return;
  }
}

}  // namespace

std::uint64_t size_of(const core::Descriptor& file) {
  struct stat status {};
  return ::fstat(file.get(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

LogPart part_from(const core::Descriptor& file, std::uint64_t from, std::size_t max_bytes) {
  LogPart part;
  part.size = size_of(file);
  part.from = std::min(from, part.size);
  part.text = read_at(file, part.from, std::min<std::uint64_t>(max_bytes, part.size - part.from));
  const auto last = part.text.rfind('\n');
  if (part.from + part.text.size() < part.size && last != std::string::npos)
    part.text.resize(last + 1);
  else
    cut_character(part.text);
  part.to = part.from + part.text.size();
  return part;
}

LogPart part_before(const core::Descriptor& file, std::uint64_t to, std::size_t max_bytes) {
  LogPart part;
  part.size = size_of(file);
  part.to = std::min(to, part.size);
  part.from = part.to - std::min<std::uint64_t>(max_bytes, part.to);
  part.text = read_at(file, part.from, part.to - part.from);
  part.to = part.from + part.text.size();
  if (part.from == 0) return part;
  std::size_t begin = part.text.find('\n') + 1;
  if (begin == 0 || begin == part.text.size()) {  // The part is within a single line.
    begin = 0;
    while (begin < part.text.size() && begin < max_character_length - 1 &&
           continues_character(part.text[begin]))
      ++begin;
  }
  part.text.erase(0, begin);
  part.from += begin;
  return part;
}

}  // namespace pipeline::serve

#include "file_tree/tar_reader.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace pipeline::file_tree {
namespace {

// The offsets and sizes of a header's fields below are those of POSIX's ustar format.
constexpr std::size_t header_size = 512;
constexpr std::uint64_t max_text = 1u << 20;
/// The maximum size of padding after the end: programs fill the last record, of some KiB.
constexpr std::uint64_t max_padding = 1u << 20;

/// Returns the text of a field, which ends at a zero byte or with the field.
std::string_view field(std::string_view header, std::size_t offset, std::size_t size) {
  const auto text = header.substr(offset, size);
  return text.substr(0, text.find('\0'));
}

/// Parses octal digits, or GNU's big-endian number behind a set high bit.
std::uint64_t number(std::string_view header, std::size_t offset, std::size_t size) {
  const auto raw = header.substr(offset, size);
  std::uint64_t value = 0;
  if (static_cast<unsigned char>(raw[0]) & 0x80) {
    for (std::size_t i = 1; i < raw.size(); ++i) {
      if (value >> 55) refuse("a size is too large");
      value = value << 8 | static_cast<unsigned char>(raw[i]);
    }
    return value;
  }
  for (const char c : raw)
    if (c >= '0' && c <= '7')
      value = value << 3 | static_cast<unsigned>(c - '0');
    else if (c != ' ' && c != '\0')
      refuse("it is not a tar archive");
  return value;
}

/// Returns the whole seconds of a time in octal digits, or in decimal ones with a fraction; 0 for
/// any other text.
std::int64_t time_of(std::string_view text, int base) {
  const auto digits = text.substr(std::min(text.find_first_not_of(' '), text.size()));
  std::int64_t value = 0;
  const auto end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, value, base);
  const bool is_whole = rest == end || *rest == ' ' || *rest == '.' || *rest == '\0';
  return error == std::errc() && is_whole && value > 0 ? value : 0;
}

/// Checks the sum of a header's bytes, in which the field of the sum counts as spaces.
/// @param requires_exact_form whether the field must have the form that tar_header() gives it: six
///                       digits, a zero byte, a space
void check_sum(std::string_view header, bool requires_exact_form) {
  const auto written = header.substr(148, 8);
  std::uint64_t sum = written.size() * ' ';
  for (std::size_t i = 0; i < header.size(); ++i)
    if (i < 148 || i >= 156) sum += static_cast<unsigned char>(header[i]);
  if (sum != number(header, 148, written.size())) refuse("it is not a tar archive");
  if (requires_exact_form && (written.find_first_not_of("01234567") != 6 ||
                              written.substr(6) != std::string_view("\0 ", 2)))
    refuse("the sum of a header is damaged");
}

/// Returns true for an entry whose content describes the next entry: pax records or a long name.
bool describes_the_next(char type) {
  return type == 'x' || type == 'L' || type == 'K' || type == 'g';
}

}  // namespace

/// Begins the entry whose header was read, or notes the end of the archive.
void TarReader::begin_entry() {
  const auto header = std::exchange(header_, {});
  if (header.find_first_not_of('\0') == header.npos) {
    ended_ = true;
    return;
  }
  check_sum(header, limits_.requires_exact_form);
  if (++entries_ > limits_.entries)
    refuse("it has more than " + std::to_string(limits_.entries) + " entries");
  Entry entry;
  entry.type = header[156] == '\0' ? '0' : header[156];
  entry.size = number(header, 124, 12);
  if (describes_the_next(entry.type)) {
    if (entry.size > max_text) refuse("a name is longer than 1 MiB");
    kind_ = entry.type;
  } else {
    kind_ = 0;
    entry.name = field(header, 0, 100);
    entry.linked = field(header, 157, 100);
    entry.mode = static_cast<unsigned>(number(header, 100, 8) & 07777);
    if (header.substr(257, 6) == std::string_view("ustar\0", 6))
      if (const auto prefix = field(header, 345, 155); !prefix.empty())
        entry.name = std::string(prefix) + "/" + entry.name;
    const auto described = std::exchange(next_attributes_, {});
    if (const auto found = described.find("path"); found != described.end())
      entry.name = found->second;
    if (const auto found = described.find("linkpath"); found != described.end())
      entry.linked = found->second;
    if (const auto found = described.find("size"); found != described.end()) {
      const auto& text = found->second;
      if (std::from_chars(text.data(), text.data() + text.size(), entry.size).ptr !=
              text.data() + text.size() ||
          text.empty())
        refuse("it is not a tar archive");
    }
    entry.time = time_of(header.substr(136, 12), 8);
    if (const auto found = described.find("mtime"); found != described.end())
      entry.time = time_of(found->second, 10);
    if (entry.name.find('\0') != entry.name.npos || entry.linked.find('\0') != entry.linked.npos)
      refuse("a name has a zero byte in it");
    if (entry.type == '1' || entry.type == '2' || entry.type == '5') entry.size = 0;
    if (entry.size > limits_.bytes - bytes_)
      refuse("its files have more than the " + std::to_string(limits_.bytes) +
             " bytes that were announced");
    bytes_ += entry.size;
    sink_.begin(entry);
  }
  if (entry.size > std::uint64_t{1} << 60) refuse("a size is too large");
  left_ = entry.size;
  padding_ = (header_size - entry.size % header_size) % header_size;
  if (left_ == 0) end_body();
}

/// Parses `LENGTH KEY=VALUE\n`; the length includes itself. Keeps only keys that are used.
void TarReader::read_records(std::string_view text) {
  while (!text.empty()) {
    std::size_t length = 0;
    const auto [digits_end, error] =
        std::from_chars(text.data(), text.data() + text.size(), length);
    const auto space = static_cast<std::size_t>(digits_end - text.data());
    if (error != std::errc() || length <= space + 1 || length > text.size() || text[space] != ' ' ||
        text[length - 1] != '\n')
      refuse("it is not a tar archive");
    const auto record = text.substr(space + 1, length - space - 2);
    const auto equals = record.find('=');
    if (equals == record.npos) refuse("it is not a tar archive");
    const auto key = record.substr(0, equals);
    if (key.starts_with("GNU.sparse."))
      refuse("it has a sparse file in the form of GNU tar, which is not supported");
    if (key == "path" || key == "linkpath" || key == "size" || key == "mtime")
      next_attributes_[std::string(key)] = record.substr(equals + 1);
    text.remove_prefix(length);
  }
}

/// Ends an entry's content, and keeps content that describes the next entry.
void TarReader::end_body() {
  const auto text = std::exchange(text_, {});
  switch (std::exchange(kind_, 0)) {
    case 0: sink_.end(); break;
    case 'x': read_records(text); break;
    case 'L': next_attributes_["path"] = text.c_str(); break;  // Up to the first NUL.
    case 'K': next_attributes_["linkpath"] = text.c_str(); break;
    default: break;  // Attributes of all entries (`g`): none of them is used.
  }
}

/// Throws unless bytes that belong to no header and no content are zeros, if that is required.
void TarReader::check_fill(std::string_view bytes) const {
  if (limits_.requires_exact_form && bytes.find_first_not_of('\0') != bytes.npos)
    refuse("bytes that fill a block or follow its end are damaged");
}

void TarReader::feed(std::string_view bytes) {
  while (!bytes.empty() && !ended_) {
    if (left_ > 0) {
      const auto piece = bytes.substr(0, std::min<std::uint64_t>(left_, bytes.size()));
      if (kind_ != 0)
        text_ += piece;
      else
        sink_.content(piece);
      bytes.remove_prefix(piece.size());
      left_ -= piece.size();
      if (left_ == 0) end_body();
    } else if (padding_ > 0) {
      const auto skipped = bytes.substr(0, std::min<std::uint64_t>(padding_, bytes.size()));
      check_fill(skipped);
      bytes.remove_prefix(skipped.size());
      padding_ -= skipped.size();
    } else {
      const auto piece = bytes.substr(0, header_size - header_.size());
      header_ += piece;
      bytes.remove_prefix(piece.size());
      if (header_.size() == header_size) begin_entry();
    }
  }
  check_fill(bytes);
  after_end_ += bytes.size();
  if (after_end_ > (limits_.requires_exact_form ? header_size : max_padding))
    refuse("bytes follow its end");
}

void TarReader::finish() const {
  if (!ended_ || (limits_.requires_exact_form && after_end_ < header_size))
    refuse("it was cut short");
}

}  // namespace pipeline::file_tree

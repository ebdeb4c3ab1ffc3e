/// @file
/// Hand-made archives that no program would write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace pipeline::test::tar {

inline std::string octal(std::uint64_t number, int digits) {
  std::string text(static_cast<std::size_t>(digits), '0');
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit, number >>= 3)
    *digit = static_cast<char>('0' + (number & 7));
  return text;
}

/// Returns one entry in the ustar format, whose offsets and widths POSIX gives (pax). The entry may
/// be invalid in any way.
/// @param linked target of a link
/// @param size size in the header; by default the content's
inline std::string entry(char type, const std::string& name, const std::string& content = {},
                         const std::string& linked = {}, std::optional<std::uint64_t> size = {}) {
  std::string header(512, '\0');
  const auto put = [&](std::size_t at, const std::string& text) {
    header.replace(at, text.size(), text);
  };
  put(0, name.substr(0, 100));
  put(100, octal(0644, 7));
  put(124, octal(size.value_or(content.size()), 11));
  put(148, "        ");
  header[156] = type;
  put(157, linked.substr(0, 100));
  put(257, std::string("ustar\0", 6) + "00");
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, octal(sum, 6) + std::string("\0 ", 2));
  return header + content + std::string((512 - content.size() % 512) % 512, '\0');
}

/// Returns a pax record, `LENGTH KEY=VALUE`. Its length counts the digits of the length as well.
inline std::string record(const std::string& key, const std::string& value) {
  const auto rest = " " + key + "=" + value + "\n";
  for (std::size_t length = rest.size() + 1;; ++length)
    if (auto text = std::to_string(length) + rest; text.size() == length) return text;
}

/// The end of an archive: two blocks of zeros.
inline const std::string end(1024, '\0');

}  // namespace pipeline::test::tar

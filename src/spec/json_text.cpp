#include "spec/json_text.hpp"

#include <charconv>
#include <optional>

namespace pipeline::spec {
namespace {

/// Parses the number of the `\uXXXX` at `at`; nothing if there is no such escape.
std::optional<unsigned> escaped(std::string_view text, std::size_t at) {
  if (text.size() < at + 6 || text.substr(at, 2) != "\\u") return std::nullopt;
  unsigned number = 0;
  const char* end = text.data() + at + 6;
  if (std::from_chars(text.data() + at + 2, end, number, 16).ptr != end) return std::nullopt;
  return number;
}

/// Encodes a character above U+FFFF, which takes four bytes.
std::string utf8(unsigned character) {
  return {static_cast<char>(0xF0 | character >> 18),
          static_cast<char>(0x80 | (character >> 12 & 0x3F)),
          static_cast<char>(0x80 | (character >> 6 & 0x3F)),
          static_cast<char>(0x80 | (character & 0x3F))};
}

}  // namespace

std::string json_as_yaml(std::string_view json) {
  std::string yaml;
  yaml.reserve(json.size());
  bool in_text = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (!in_text) {
      in_text = c == '"';
      yaml += c == '\t' ? ' ' : c;
      continue;
    }
    in_text = c != '"';
    yaml += c;
    if (c != '\\') continue;
    const auto high = escaped(json, i), low = escaped(json, i + 6);
    if (high && low && *high >= 0xD800 && *high < 0xDC00 && *low >= 0xDC00 && *low < 0xE000) {
      yaml.pop_back();
      yaml += utf8(0x10000 + ((*high - 0xD800) << 10 | (*low - 0xDC00)));
      i += 11;
    } else if (i + 1 < json.size()) {
      yaml += json[++i];
    }
  }
  return yaml;
}

}  // namespace pipeline::spec

#include "gpu/version.hpp"

#include <algorithm>
#include <charconv>

#include "core/joined.hpp"

namespace pipeline::gpu {

std::optional<Version> Version::parse(std::string_view text) {
  constexpr std::size_t max_parts = 6;
  Version version;
  version.written = text;
  for (;;) {
    const auto part = text.substr(0, text.find('.'));
    unsigned number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (part.empty() || error != std::errc() || end != part.data() + part.size() ||
        version.parts.size() == max_parts)
      return std::nullopt;
    version.parts.push_back(number);
    if (part.size() == text.size()) return version;
    text.remove_prefix(part.size() + 1);
  }
}

std::string Version::text() const {
  if (!written.empty()) return written;
  return core::joined(parts, ".", [](unsigned part) { return std::to_string(part); });
}

Version Version::first(std::size_t count) const {
  return {
      {parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(std::min(count, parts.size()))},
      {}};
}

std::strong_ordering Version::operator<=>(const Version& other) const {
  for (std::size_t i = 0; i < std::max(parts.size(), other.parts.size()); ++i) {
    const unsigned a = i < parts.size() ? parts[i] : 0,
                   b = i < other.parts.size() ? other.parts[i] : 0;
    if (a != b) return a <=> b;
  }
  return std::strong_ordering::equal;
}

}  // namespace pipeline::gpu

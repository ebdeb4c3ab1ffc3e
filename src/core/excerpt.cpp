#include "core/excerpt.hpp"

namespace pipeline::core {

std::string excerpt(std::string_view text) {
  constexpr std::size_t max_bytes = 8192, max_continuations = 3;
  if (text.size() <= max_bytes) return std::string(text);
  auto end = max_bytes;
  while (end > max_bytes - max_continuations && (static_cast<unsigned char>(text[end]) >> 6) == 2)
    --end;
  return std::string(text.substr(0, end)) + "... (and " + std::to_string(text.size() - end) +
         " bytes more)";
}

}  // namespace pipeline::core

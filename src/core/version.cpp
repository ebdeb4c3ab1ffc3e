#include "core/version.hpp"

#include <charconv>

namespace pipeline::core {

bool is_older(std::string_view version, std::array<unsigned, 3> than) {
  std::array<unsigned, 3> numbers{};
  const char* at = version.data();
  const char* const end = at + version.size();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto [next, error] = std::from_chars(at, end, numbers[i]);
    if (error != std::errc()) return i > 0 && numbers < than;
    at = next;
    if (at == end || *at != '.') break;
    ++at;
  }
  return numbers < than;
}

}  // namespace pipeline::core

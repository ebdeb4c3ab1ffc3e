#include "core/free_room.hpp"

#include <algorithm>
#include <limits>

namespace pipeline::core {

std::uint64_t free_room(const std::filesystem::path& folder) {
  constexpr std::uint64_t max_reserve = std::uint64_t{1} << 30, part = 50;
  std::error_code error;
  const auto space = std::filesystem::space(folder, error);
  if (error) return std::numeric_limits<std::uint64_t>::max();
  const auto reserve = std::min(max_reserve, space.capacity / part);
  return space.available - std::min(space.available, reserve);
}

}  // namespace pipeline::core

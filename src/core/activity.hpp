/// @file
/// What processes have done so far.
#pragma once

#include <chrono>
#include <cstdint>

namespace pipeline::core {

struct Activity {
  std::chrono::microseconds cpu{};
  std::uint64_t bytes = 0;  ///< Read and written.
};

}  // namespace pipeline::core

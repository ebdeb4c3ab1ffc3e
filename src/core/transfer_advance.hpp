/// @file
/// Whether a transfer that is cut again and again makes progress.
#pragma once

#include <cstdint>

namespace pipeline::core {

/// A transfer that has made progress has all of its tries again. A few bytes are none: a server
/// that gives one in each try would be asked for ever.
class TransferAdvance {
 public:
  static constexpr std::uint64_t min_bytes = 64 << 10;

  /// Returns true if the transfer is further by `min_bytes` than when this was last true, also if
  /// bytes were discarded in between.
  /// @param received bytes of the content
  bool is_made(std::uint64_t received) {
    if (received < known_ + min_bytes) return false;
    known_ = received;
    return true;
  }

 private:
  std::uint64_t known_ = 0;
};

}  // namespace pipeline::core

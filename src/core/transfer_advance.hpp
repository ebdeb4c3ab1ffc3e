/// @file
/// Decides whether a transfer that is cut again and again makes progress.
#pragma once

#include <cstdint>

namespace pipeline::core {

/// The progress of a transfer, after which its caller counts the tries anew. A few bytes are not
/// progress, because a server that sends one byte in each try would be asked for ever.
class TransferAdvance {
 public:
  static constexpr std::uint64_t min_bytes = 64 << 10;

  /// Returns true, and remembers `received`, if `min_bytes` more have been received than at the
  /// last call that returned true.
  /// @param received the number of the content's bytes so far; may become smaller between calls
  bool has_advanced(std::uint64_t received) {
    if (received < known_ + min_bytes) return false;
    known_ = received;
    return true;
  }

 private:
  std::uint64_t known_ = 0;
};

}  // namespace pipeline::core

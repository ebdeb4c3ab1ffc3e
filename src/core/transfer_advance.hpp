/// @file
/// Decides whether a transfer that is cut again and again makes progress.
#pragma once

#include <cstdint>

namespace pipeline::core {

/// Tells when a transfer has advanced so far that its caller may count the tries from 0 again. A
/// few bytes do not suffice, because a server that sends one byte in each try would be asked for
/// ever.
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

/// @file
/// Sizes and numbers of the requests by which large blobs are transferred: one place for the driver
/// and for the stager in a pod.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace pipeline::blobs {

/// Connections of one process to one store.
inline constexpr std::size_t max_connections = 8;
/// The smallest part of an upload. S3 accepts parts of 5 MiB; a smaller blob is sent in one
/// request.
inline constexpr std::uint64_t min_part = std::uint64_t{16} << 20;
/// The first range of a download, whose response has the size of the whole blob.
inline constexpr std::uint64_t first_range = std::uint64_t{8} << 20;

/// Returns the size of the parts, a multiple of 1 MiB, with which this number of parts suffices.
constexpr std::uint64_t part_size(std::uint64_t bytes, std::size_t max_parts) {
  constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;
  const auto fair = (bytes + max_parts - 1) / max_parts;
  return std::max(min_part, (fair + mebibyte - 1) / mebibyte * mebibyte);
}

/// Returns the size of the further ranges of a blob: 8 to 64 MiB.
constexpr std::uint64_t range_size(std::uint64_t bytes) {
  constexpr std::uint64_t max_range = std::uint64_t{64} << 20, wanted_ranges = 64;
  return std::clamp(bytes / wanted_ranges, first_range, max_range);
}

/// The number of connections that may be used at a time. A server that is busy, or a link that is
/// cut, halves it; successes raise it again, by one at a time.
class ConnectionLimit {
 public:
  using Clock = std::chrono::steady_clock;
  explicit ConnectionLimit(std::size_t max = max_connections) : max_(max), now_(max) {}

  std::size_t value() const { return now_; }
  /// Records a request that the server refused as busy (429, 503), or that was cut.
  void note_failure(Clock::time_point time = Clock::now()) {
    successes_ = 0;
    // A single event fails all requests in progress, and is counted once.
    if (time < next_) return;
    next_ = time + std::chrono::seconds(1);
    now_ = std::max<std::size_t>(1, now_ / 2);
  }
  void note_success() {
    if (now_ >= max_ || ++successes_ < 2 * now_) return;
    successes_ = 0;
    ++now_;
  }

 private:
  std::size_t max_, now_, successes_ = 0;
  Clock::time_point next_;  ///< The time from which a failure halves the number.
};

}  // namespace pipeline::blobs

/// @file
/// Sizes and numbers of the requests by which large blobs are transferred. Shared by the driver and
/// by the stager, the program that transfers files in a pod. Sizes are bytes.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace pipeline::blobs {

/// The maximum number of connections of one process to one store.
inline constexpr std::size_t max_connections = 8;
/// The smallest part of an upload; a smaller blob is sent in one request. S3 accepts parts from 5
/// MiB. A larger part costs more if its connection is cut, because it is sent again from its
/// beginning.
inline constexpr std::uint64_t min_part = std::uint64_t{8} << 20;
/// The maximum number of parts of an output of a pod. Their URLs are signed before the output's
/// size is known. A part has at most 5 GiB, so that an output has at most 1,280 GiB.
inline constexpr unsigned max_output_parts = 256;
/// The first range of a download, whose response has the size of the whole blob.
inline constexpr std::uint64_t first_range = std::uint64_t{8} << 20;

/// Returns the size of the parts, a multiple of 1 MiB, so that `max_parts` parts suffice.
constexpr std::uint64_t part_size(std::uint64_t bytes, std::size_t max_parts) {
  constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;
  const auto fair = (bytes + max_parts - 1) / max_parts;
  return std::max(min_part, (fair + mebibyte - 1) / mebibyte * mebibyte);
}

/// The durations of the download of a range.
struct Pace {
  std::chrono::duration<double> wait{};      ///< From the request to the first byte.
  std::chrono::duration<double> transfer{};  ///< From the first byte to the last.
  std::uint64_t bytes = 0;

  /// Returns the bytes that could have been transferred during the wait for the first byte.
  std::uint64_t lag() const {
    const auto least = std::chrono::duration<double>(1e-3);
    return static_cast<std::uint64_t>(static_cast<double>(bytes) *
                                      (wait / std::max(transfer, least)));
  }
};

/// Returns the size of the further ranges of a blob: 8 to 64 MiB, and more if the server waits for
/// long before each response. Some servers first hash the whole blob, for its ETag.
inline std::uint64_t range_size(std::uint64_t bytes, const Pace& pace) {
  constexpr std::uint64_t max_range = std::uint64_t{64} << 20, wanted_ranges = 64, lags = 4;
  return std::max(std::clamp(bytes / wanted_ranges, first_range, max_range), lags * pace.lag());
}

/// Size and maximum number of ranges that are kept in memory, for content that is needed in order.
inline constexpr std::uint64_t range_in_memory = std::uint64_t{4} << 20;
inline constexpr std::size_t ranges_in_memory = max_connections;

/// Returns false if one connection delivers the content faster than ranges that are kept in memory.
inline bool may_split_stream(const Pace& pace) {
  return pace.lag() < range_in_memory * (ranges_in_memory - 1);
}

/// The number of connections that may be used at a time: two at first, and one more as long as that
/// increases the total rate. The number is halved when the server is busy or a connection is cut.
class ConnectionLimit {
 public:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;
  explicit ConnectionLimit(std::size_t max = max_connections)
      : max_(max), current_(std::min<std::size_t>(2, max)) {}

  std::size_t value() const { return current_; }
  /// Records a request that the server refused as busy (429, 503), or that was cut.
  void note_failure(Clock::time_point time = Clock::now()) {
    begin_count();
    rate_of_fewer_ = 0;
    // One event fails all requests in progress: failures within a second count once.
    if (time < next_) return;
    next_ = time + std::chrono::seconds(1);
    current_ = std::max<std::size_t>(1, current_ / 2);
    pause_ = rounds_after_loss;
  }
  /// Records a request and its duration.
  void note_success(std::uint64_t bytes, Seconds duration) {
    bytes_ += static_cast<double>(bytes);
    duration_ += duration;
    if (++count_ < 2 * current_) return;  // Each connection has not yet had two requests.
    const auto rate = static_cast<double>(current_) * bytes_ / std::max(duration_.count(), 1e-6);
    begin_count();
    if (rate < min_gain * rate_of_fewer_) {
      --current_;  // The connection that was added last did not increase the rate enough.
      rate_of_fewer_ = 0;
      pause_ = rounds_after_loss;
    } else if (pause_ > 0) {
      --pause_;
    } else if (current_ < max_) {
      rate_of_fewer_ = rate;
      ++current_;
    }
  }

 private:
  /// The least rate with one more connection, divided by the rate before.
  static constexpr double min_gain = 1.1;
  static constexpr unsigned rounds_after_loss = 8;  ///< First value of pause_ after a decrease.

  void begin_count() {
    count_ = 0;
    bytes_ = 0;
    duration_ = {};
  }

  std::size_t max_, current_, count_ = 0;
  double bytes_ = 0;
  double rate_of_fewer_ = 0;  ///< Bytes a second with one connection fewer; 0: unknown.
  Seconds duration_{};
  unsigned pause_ = 0;      ///< Rounds until one more connection is tried again.
  Clock::time_point next_;  ///< The time from which a failure halves the number.
};

}  // namespace pipeline::blobs

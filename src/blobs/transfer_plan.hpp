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
/// The smallest part of an upload; a smaller blob is sent in one request. S3 accepts parts of 5
/// MiB. Larger ones cost more where connections are cut, because a part is sent again from its
/// beginning.
inline constexpr std::uint64_t min_part = std::uint64_t{8} << 20;
/// Parts of an output of a pod, whose URLs are signed before its size is known. Each has at most 5
/// GiB, so that an output has at most 1,280 GiB.
inline constexpr unsigned max_output_parts = 256;
/// The first range of a download, whose response has the size of the whole blob.
inline constexpr std::uint64_t first_range = std::uint64_t{8} << 20;

/// Returns the size of the parts, a multiple of 1 MiB, with which this number of parts suffices.
constexpr std::uint64_t part_size(std::uint64_t bytes, std::size_t max_parts) {
  constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;
  const auto fair = (bytes + max_parts - 1) / max_parts;
  return std::max(min_part, (fair + mebibyte - 1) / mebibyte * mebibyte);
}

/// How a range has come.
struct Pace {
  std::chrono::duration<double> wait{};      ///< Until its first byte.
  std::chrono::duration<double> transfer{};  ///< From then on.
  std::uint64_t bytes = 0;

  /// Returns the bytes that would have come while the server was silent.
  std::uint64_t lag() const {
    const auto least = std::chrono::duration<double>(1e-3);
    return static_cast<std::uint64_t>(static_cast<double>(bytes) *
                                      (wait / std::max(transfer, least)));
  }
};

/// Returns the size of the further ranges of a blob: 8 to 64 MiB, and more from a server that is
/// silent for long before each response. Some hash all of the blob first, for its ETag.
inline std::uint64_t range_size(std::uint64_t bytes, const Pace& pace) {
  constexpr std::uint64_t max_range = std::uint64_t{64} << 20, wanted_ranges = 64, lags = 4;
  return std::max(std::clamp(bytes / wanted_ranges, first_range, max_range), lags * pace.lag());
}

/// Ranges that are kept in memory until their turn comes, because the content is needed in order.
inline constexpr std::uint64_t range_in_memory = std::uint64_t{4} << 20;
inline constexpr std::size_t ranges_in_memory = max_connections;

/// Returns false if the content comes faster in order by one connection than in such ranges.
inline bool may_split_stream(const Pace& pace) {
  return pace.lag() < range_in_memory * (ranges_in_memory - 1);
}

/// The number of connections that may be used at a time: two at first, and one more as long as that
/// makes the whole faster. A server that is busy, or a link that is cut, halves it.
class ConnectionLimit {
 public:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;
  explicit ConnectionLimit(std::size_t max = max_connections)
      : max_(max), now_(std::min<std::size_t>(2, max)) {}

  std::size_t value() const { return now_; }
  /// Records a request that the server refused as busy (429, 503), or that was cut.
  void note_failure(Clock::time_point time = Clock::now()) {
    begin_count();
    rate_of_fewer_ = 0;
    // A single event fails all requests in progress, and is counted once.
    if (time < next_) return;
    next_ = time + std::chrono::seconds(1);
    now_ = std::max<std::size_t>(1, now_ / 2);
    pause_ = rounds_after_loss;
  }
  /// Records a request and its duration.
  void note_success(std::uint64_t bytes, Seconds duration) {
    bytes_ += static_cast<double>(bytes);
    duration_ += duration;
    if (++count_ < 2 * now_) return;
    const auto rate = static_cast<double>(now_) * bytes_ / std::max(duration_.count(), 1e-6);
    begin_count();
    if (rate < min_gain * rate_of_fewer_) {
      --now_;  // The last one did not pay.
      rate_of_fewer_ = 0;
      pause_ = rounds_after_loss;
    } else if (pause_ > 0) {
      --pause_;
    } else if (now_ < max_) {
      rate_of_fewer_ = rate;
      ++now_;
    }
  }

 private:
  static constexpr double min_gain = 1.1;
  static constexpr unsigned rounds_after_loss = 8;  ///< Until one more is tried again.

  void begin_count() {
    count_ = 0;
    bytes_ = 0;
    duration_ = {};
  }

  std::size_t max_, now_, count_ = 0;
  double bytes_ = 0, rate_of_fewer_ = 0;  ///< Bytes a second, of one connection fewer; 0: unknown.
  Seconds duration_{};
  unsigned pause_ = 0;
  Clock::time_point next_;  ///< The time from which a failure halves the number.
};

}  // namespace pipeline::blobs

/// @file
/// Separates a pod's log, as the server sends it with timestamps, into the step's two streams. A
/// cluster keeps one stream of lines. The agent in the pod writes one frame a line
/// (agent/frames.hpp), with its offset and size. Lines that are read twice after an interruption
/// are therefore reported once, and missing lines are detected: a node deletes the older part of a
/// growing log, whether or not it has been read.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "agent/frames.hpp"
#include "core/lines.hpp"

namespace pipeline::kubernetes_api {

class PodLogFrames {
 public:
  using Time = std::chrono::system_clock::time_point;
  /// Returns at most `size` bytes of the agent's own copy of the log from this offset on; empty at
  /// the end or without a copy.
  using ReadCopy = std::function<std::string(std::uint64_t offset, std::size_t size)>;
  /// @param on_bytes receives whether the bytes are of stderr, and the bytes
  explicit PodLogFrames(std::function<void(bool, std::string_view)> on_bytes, ReadCopy copy = {})
      : on_bytes_(std::move(on_bytes)), copy_(std::move(copy)) {}

  /// Call before the log is read again from last_time() on. Lines that were already reported are
  /// skipped.
  void restart() { lines_.clear(); }
  void feed(std::string_view bytes);
  /// Ends the log: reports the rest of the agent's copy.
  void finish();
  /// Returns true if the agent has marked the end of the log.
  bool ended() const { return ended_; }
  /// Returns true if the agent has reported something of the step: its output, or that its services
  /// are ready and it begins.
  bool has_begun() const { return has_begun_; }
  /// Returns the step's resource usage as JSON; empty before the end.
  const std::string& usage() const { return usage_; }
  /// Returns the waits of a stalled step's processes; empty if the step has not stalled, or has
  /// printed output or made progress since.
  const std::string& waits() const { return waits_; }
  /// Returns when the step has last printed something, or made progress in silence; nothing before
  /// the first.
  const std::optional<std::chrono::steady_clock::time_point>& last_progress() const {
    return last_progress_;
  }
  /// Returns the time of the last line; nothing before the first.
  const std::optional<Time>& last_time() const { return last_time_; }

 private:
  void take_line(std::string_view line);
  void report(const agent::Frame& frame, std::size_t size);
  void fetch_until(std::uint64_t offset);

  std::function<void(bool, std::string_view)> on_bytes_;
  ReadCopy copy_;
  core::Lines lines_;
  std::optional<Time> last_time_;
  std::optional<std::chrono::steady_clock::time_point> last_progress_;
  std::string usage_, waits_;
  std::uint64_t reported_ = 0;  ///< Bytes of frames that were reported.
  bool has_begun_ = false, ended_ = false;
};

}  // namespace pipeline::kubernetes_api

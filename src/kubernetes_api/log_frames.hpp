/// @file
/// Separates a pod's log, as the server sends it with timestamps, into the step's two streams. A
/// cluster keeps one stream of lines; the agent in the pod writes one frame a line
/// (agent/main.cpp): `o0 4 TEXT`, `O10 4 TEXT`, `e21 4 TEXT`, `E32 4 TEXT`, when it has stalled
/// `w43 2 ..` with what its processes wait in, and at the end `u43 2 {}` with what the step used,
/// and `.53`. Each has its offset among all bytes of frames, and its
/// size. Therefore lines that are read twice after an interruption are reported once, and missing
/// lines are noticed: a node deletes the older part of a growing log, whether or not it has been
/// read.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/lines.hpp"

namespace pipeline::kubernetes_api {

class PodLogFrames {
 public:
  using Time = std::chrono::system_clock::time_point;
  /// Returns bytes of the agent's own copy of the log from this offset on, at most `size`; empty at
  /// its end or if there is no copy.
  using Kept = std::function<std::string(std::uint64_t place, std::size_t size)>;
  /// @param on_bytes (is stderr, bytes)
  explicit PodLogFrames(std::function<void(bool, std::string_view)> on_bytes, Kept kept = {})
      : on_bytes_(std::move(on_bytes)), kept_(std::move(kept)) {}

  /// Call before the log is read again from last() on. Lines that were already reported are
  /// skipped.
  void restart() { lines_.clear(); }
  void feed(std::string_view bytes);
  /// Ends the log: reports what the agent's copy has beyond it.
  void finish();
  /// Returns true if the agent has marked the end of the log.
  bool ended() const { return ended_; }
  /// Returns what the agent has written of what the step used, as JSON; empty before the end.
  const std::string& usage() const { return usage_; }
  /// Returns what the agent has written of what the processes of a step that stalls wait in; empty
  /// if it has not, or the step has printed something since.
  const std::string& waits() const { return waits_; }
  /// Time of the last line; nothing before the first.
  const std::optional<Time>& last() const { return last_; }

 private:
  void take_line(std::string_view line);
  struct Frame;
  static std::optional<Frame> frame_of(std::string_view line);
  void tell(const Frame& frame, std::size_t size);
  void fetch_until(std::uint64_t place);

  std::function<void(bool, std::string_view)> on_bytes_;
  Kept kept_;
  core::Lines lines_;
  std::optional<Time> last_;
  std::string usage_, waits_;
  std::uint64_t reported_ = 0;  ///< Bytes of frames that were reported.
  bool ended_ = false;
};

}  // namespace pipeline::kubernetes_api

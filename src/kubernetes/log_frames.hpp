/// @file
/// A pod's log, as its server sends it with timestamps, to the step's two streams. A cluster keeps
/// one stream of lines; the agent in the pod writes a frame a line (agent/main.cpp): `o0 4 TEXT`,
/// `O10 4 TEXT`, `e21 4 TEXT`, `E32 4 TEXT`, and at last `.43`: its place among all bytes of
/// frames, its size. So what is read twice, after a cut, is told once, and what never comes is
/// noticed: a node throws away the older part of a log that grows, whether or not it has been read.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/lines.hpp"

namespace pipeline::kubernetes {

class LogFrames {
 public:
  using Time = std::chrono::system_clock::time_point;
  /// What the agent has kept from this place on: at most so many bytes, none at the end or where it
  /// has kept nothing.
  using Kept = std::function<std::string(std::uint64_t place, std::size_t size)>;
  /// @param on_bytes (is stderr, bytes)
  explicit LogFrames(std::function<void(bool, std::string_view)> on_bytes, Kept kept = {})
      : on_bytes_(std::move(on_bytes)), kept_(std::move(kept)) {}

  /// The log is read anew, from last() on: lines come again that have been told.
  void restart() { lines_.clear(); }
  void feed(std::string_view bytes);
  /// No more of the log is to be had: tells what the agent has kept beyond.
  void finish();
  /// The agent has said that nothing more comes.
  bool ended() const { return ended_; }
  /// The time of the last line; nothing before the first.
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
  std::uint64_t reported_ = 0;  ///< Bytes of frames.
  bool ended_ = false;
};

}  // namespace pipeline::kubernetes

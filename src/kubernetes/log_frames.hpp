/// @file
/// A pod's log, as its server sends it with timestamps, to the step's two streams. A cluster keeps one stream of lines; the agent in the pod writes a frame a
/// line (agent/main.cpp): `o TEXT`, `O TEXT`, `e TEXT`, `E TEXT`, and at last `.`. What is read twice, after a cut, is told once.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/lines.hpp"

namespace pipeline::kubernetes {

class LogFrames {
 public:
  using Time = std::chrono::system_clock::time_point;
  /// @param on_bytes (is stderr, bytes)
  explicit LogFrames(std::function<void(bool, std::string_view)> on_bytes) : on_bytes_(std::move(on_bytes)) {}

  /// The log is read anew, from last() on: lines come again that have been told.
  void restart();
  void feed(std::string_view bytes);
  /// The agent has said that nothing more comes.
  bool ended() const { return ended_; }
  /// The time of the last line; nothing before the first.
  const std::optional<Time>& last() const { return last_; }

 private:
  void take_line(std::string_view line);

  std::function<void(bool, std::string_view)> on_bytes_;
  Lines lines_;
  std::optional<Time> last_;
  unsigned told_at_last_ = 0;  ///< Lines with that very time.
  unsigned again_ = 0;         ///< Those that have come again since restart().
  bool ended_ = false;
};

}  // namespace pipeline::kubernetes

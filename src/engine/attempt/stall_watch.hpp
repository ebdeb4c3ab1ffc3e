/// @file
/// Detects that a step has printed nothing for a time.
#pragma once

#include <optional>

#include "engine/clock.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::engine {

/// The log of an attempt, which notes when it was last written to.
class StallWatch final : public orchestrators::LogSink {
 public:
  /// @param log   receives all output
  /// @param after time without output after which the attempt has stalled; unset: never
  StallWatch(const asio::any_io_executor& executor, orchestrators::LogSink& log,
             std::optional<Duration> after)
      : timer_(executor), log_(log), after_(after) {}

  void write(Stream stream, std::string_view bytes) override;
  /// Notes that the step's command is running: silence counts from now on.
  void begin();
  /// Notes that all processes have made progress up to the time `until`, which counts as output.
  void note_progress(Clock::time_point until);
  /// Returns the pause between two looks for progress; nothing if the attempt may be silent for
  /// ever.
  std::optional<Clock::duration> pause_between_looks() const;
  /// Notes that the attempt has ended, so that stalled() returns.
  void end();
  /// Returns true once the attempt has stalled, and again after it has printed something in
  /// between; false at its end.
  async::Task<bool> stalled();

 private:
  asio::steady_timer timer_;
  orchestrators::LogSink& log_;
  const std::optional<Duration> after_;
  std::optional<Clock::time_point> last_output_;  ///< Unset before begin().
  bool is_reported_ = false;  ///< stalled() has returned true, and nothing was printed since.
  bool has_ended_ = false;
};

}  // namespace pipeline::engine

/// @file
/// Converts Ctrl-C and similar signals to a stop of the work in progress.
#pragma once

#include <functional>
#include <string_view>

#include "async/task.hpp"
#include "core/cancel.hpp"
#include "driver/cancellation.hpp"

namespace pipeline::cli {

using driver::stop_at_once;

/// While this object lives, SIGINT, SIGTERM and SIGHUP stop `cancel`: the first signal gracefully,
/// the second at once. A third signal that is SIGINT (Ctrl-C) ends the process immediately, also if
/// the event loop is stuck. The signal `stop_at_once` always stops `cancel` at once. After the
/// destruction, the signals are ignored except a third SIGINT: the work has ended, and a late
/// signal, such as that of `pipe cancel`, must not change the exit code.
class StopOnSignals {
 public:
  /// @param say shows a line to the user
  StopOnSignals(asio::io_context& loop, core::CancelSource& cancel,
                std::function<void(std::string_view)> say);
  ~StopOnSignals();
  StopOnSignals(const StopOnSignals&) = delete;
  StopOnSignals& operator=(const StopOnSignals&) = delete;

 private:
  void await_signal();
  asio::signal_set signals_;
  core::CancelSource& cancel_;
  std::function<void(std::string_view)> say_;
};

}  // namespace pipeline::cli

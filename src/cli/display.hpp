/// @file
/// The progress display of a command that works for a while, and the signals that stop it.
#pragma once

#include <memory>
#include <optional>

#include "cli/context.hpp"
#include "cli/progress.hpp"
#include "cli/signals.hpp"

namespace pipeline::cli {

/// Shows events on standard output, as the options and the terminal ask for, until it is closed or
/// destroyed.
class Display {
 public:
  /// @param stops_on_signals else those are the caller's matter
  explicit Display(Context& context, bool stops_on_signals = true);
  ~Display();
  Progress& progress() { return *progress_; }
  core::CancelSource& cancel() { return cancel_; }
  /// Leaves the terminal to others.
  void close();

 private:
  void wait();
  std::unique_ptr<Progress> progress_;
  core::CancelSource cancel_;
  std::optional<StopOnSignals> signals_;
  asio::steady_timer timer_;
};

}  // namespace pipeline::cli

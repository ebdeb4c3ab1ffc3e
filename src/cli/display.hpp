/// @file
/// The progress display of a long command, and the signals that stop it.
#pragma once

#include <memory>
#include <optional>

#include "cli/context.hpp"
#include "cli/progress.hpp"
#include "cli/signals.hpp"

namespace pipeline::cli {

class Background;

/// Shows events on standard output, in the form that options and terminal determine, until it is
/// closed or destroyed.
class Display {
 public:
  /// @param stops_on_signals whether it handles signals; otherwise the caller does
  /// @param background if not null, nothing is shown any more once it has left the terminal
  explicit Display(Context& context, bool stops_on_signals = true,
                   const Background* background = nullptr);
  ~Display();
  Progress& progress() { return *progress_; }
  core::CancelSource& cancel() { return cancel_; }
  /// Ends the display, so that other output can follow.
  void close();

 private:
  void wait();
  std::unique_ptr<Progress> progress_;
  core::CancelSource cancel_;
  std::optional<StopOnSignals> signals_;
  asio::steady_timer timer_;
};

}  // namespace pipeline::cli

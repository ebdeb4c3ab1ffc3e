/// @file
/// The progress display of a long command, and the signals that stop it.
#pragma once

#include <memory>
#include <optional>

#include "cli/context.hpp"
#include "cli/progress.hpp"
#include "cli/signals.hpp"
#include "driver/background.hpp"
#include "driver/run_observer.hpp"

namespace pipeline::cli {

enum class SignalHandling {
  stop,  ///< Signals stop the work.
  none,  ///< The caller handles them.
};

/// Shows events on standard output, in the form that options and terminal determine, until it is
/// closed or destroyed.
class Display {
 public:
  explicit Display(Context& context, SignalHandling signals = SignalHandling::stop)
      : Display(context, context.loop(), signals, nullptr) {}
  /// @param loop of the work that is shown
  /// @param background if not null, nothing is shown after the background process has left the
  /// terminal
  Display(const Context& context, asio::io_context& loop, SignalHandling signals,
          const driver::Background* background);
  ~Display();
  Progress& progress() { return *progress_; }
  core::CancelSource& cancel() { return cancel_; }
  /// Ends the display, so that other output can follow.
  void close();

 private:
  void schedule_tick();
  std::unique_ptr<Progress> progress_;
  core::CancelSource cancel_;
  std::optional<StopOnSignals> signals_;
  asio::steady_timer timer_;
};

/// Shows a run from its beginning.
class RunDisplay final : public driver::RunObserver {
 public:
  /// @param background if not null, nothing is shown after the background process has left the
  /// terminal
  explicit RunDisplay(const Context& context, const driver::Background* background = nullptr)
      : context_(context), background_(background) {}
  RunDisplay(const Context& context, SignalHandling signals)
      : context_(context), signals_(signals) {}

  void begin(asio::io_context& loop) override {
    display_.emplace(context_, loop, signals_, background_);
  }
  EventSink& events() override { return display_->progress(); }
  core::CancelSource& cancel() override { return display_->cancel(); }
  void warn(const std::string& text, const nlohmann::json& warning) override;
  void say(const std::string& line) override { display_->progress().say(line); }
  void end() override { display_->close(); }
  const driver::RunModel& model() { return display_->progress().model(); }

 private:
  const Context& context_;
  const driver::Background* background_ = nullptr;
  const SignalHandling signals_ = SignalHandling::stop;
  std::optional<Display> display_;
};

}  // namespace pipeline::cli

/// @file
/// The display of a run in progress: live lines on a terminal, plain lines in a pipe or CI, or
/// events as JSON.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "cli/terminal.hpp"
#include "cli/text.hpp"
#include "driver/run_model.hpp"

namespace pipeline::cli {

/// The environment of a progress display; tests replace it.
struct ProgressIo {
  std::function<void(std::string_view)> write;
  std::function<driver::SteadyTime()> now = std::chrono::steady_clock::now;
  std::function<TerminalSize()> size = [] { return TerminalSize{}; };
  Paint paint;
  bool is_verbose = false;  ///< Shows each metric that a step reports.
};

using driver::many_steps;

class Progress : public EventSink {
 public:
  /// Most displays leave out events of which a large run has too many.
  enum class ShownEvents { most, all };

  void emit(const Event& event) final { emit(event, io_.now()); }
  /// Shows an event that happened at an earlier time.
  void emit(const Event& event, driver::SteadyTime at);
  /// Calls `record` from now on with each event before it is shown.
  void record(std::function<void(const Event&)> record) { record_ = std::move(record); }
  /// Updates the screen; call it a few times a second.
  virtual void tick() {}
  /// Leaves the screen in its final state; nothing is shown afterwards.
  virtual void close() {}
  /// Shows a line about the run that is not an event, such as the effect of Ctrl-C.
  virtual void say(std::string_view text) = 0;
  const driver::RunModel& model() const { return model_; }

 protected:
  explicit Progress(ProgressIo io, ShownEvents shown = ShownEvents::most)
      : io_(std::move(io)), shown_events_(shown) {}
  virtual void show(const Event& event) = 0;
  /// Returns the last values of a step that the event finishes.
  std::string values_of(const Event& event);
  /// Called when one of many instances that are shown together has changed.
  virtual void show_group(const driver::GroupView&) {}
  ProgressIo io_;
  driver::RunModel model_;
  /// The instance whose failure was shown, by step with a matrix and message.
  std::map<std::string, std::string> failed_;

 private:
  bool is_shown(const Event& event);
  void show_once(const Event& event);
  std::function<void(const Event&)> record_;
  ShownEvents shown_events_;
};

std::unique_ptr<Progress> plain_progress(ProgressIo io);
std::unique_ptr<Progress> live_progress(ProgressIo io);
/// Prints one event a line; `say` prints nothing.
std::unique_ptr<Progress> json_progress(ProgressIo io);
/// Shows only what `say` is called with.
std::unique_ptr<Progress> quiet_progress(ProgressIo io);

/// Says which lines are shown, and adds data from outside of the event.
struct LineDetail {
  bool builds = false;      ///< Lines about builds and waits, which a live display redraws instead.
  bool metrics = false;     ///< Lines of steps that only report a metric or progress.
  std::string values = {};  ///< The last values of a step that the event finishes.
};

/// Returns the permanent line or lines of an event, as the plain and the live display print them;
/// empty for events that only change the live lines. A failure is shown with its message and hints,
/// without its details, which have been shown before and are repeated in the summary.
std::string event_lines(const Event& event, const Paint& paint, const LineDetail& detail);

}  // namespace pipeline::cli

/// @file
/// What a run shows while it goes on: live lines on a terminal, plain lines in a pipe or CI, events
/// as JSON.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cli/run_model.hpp"
#include "cli/terminal.hpp"
#include "cli/text.hpp"

namespace pipeline::cli {

/// What a progress display needs of the world; tests put in their own.
struct ProgressIo {
  std::function<void(std::string_view)> write;
  std::function<SteadyTime()> now = std::chrono::steady_clock::now;
  std::function<TerminalSize()> size = [] { return TerminalSize{}; };
  Paint paint;
};

/// In a run of more steps than this a step that is reused gets no line of its own.
inline constexpr std::size_t many_steps = 50;

class Progress : public EventSink {
 public:
  void emit(const Event& event) final;
  /// Brings the screen up to date; to be called a few times a second.
  virtual void tick() {}
  /// Leaves the screen as it is to stay; nothing is shown afterwards.
  virtual void close() {}
  /// A line about the run that is no event, such as what Ctrl-C did.
  virtual void say(std::string_view text) = 0;
  const RunModel& model() const { return model_; }

 protected:
  explicit Progress(ProgressIo io, bool shows_all = false)
      : io_(std::move(io)), shows_all_(shows_all) {}
  virtual void show(const Event& event) = 0;
  /// Something has changed in one of many instances that are told as one.
  virtual void show_group(const GroupView&) {}
  ProgressIo io_;
  RunModel model_;

 private:
  bool is_told(const Event& event);
  bool shows_all_;
};

std::unique_ptr<Progress> plain_progress(ProgressIo io);
std::unique_ptr<Progress> live_progress(ProgressIo io);
/// One event a line. `say` is silent.
std::unique_ptr<Progress> json_progress(ProgressIo io);

/// The line or lines that tell of an event for good, as the plain and the live display print them;
/// empty for what only changes the live lines. Of a failure the message and the hints: its details
/// have been seen already, and come again in the summary.
/// @param verbose also what a live display shows in its live lines
std::string event_lines(const Event& event, const Paint& paint, bool verbose);

}  // namespace pipeline::cli

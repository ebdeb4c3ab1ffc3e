/// @file
/// A driver that continues in a process of its own, without the terminal at which its run was
/// started.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "cli/context.hpp"
#include "cli/event_log.hpp"
#include "core/error.hpp"

namespace pipeline::cli {

/// The driver's side. Until it leaves the terminal, it writes there as any command does.
class Background {
 public:
  /// @param terminal what the command at the terminal reads from
  explicit Background(core::Descriptor terminal) : terminal_(std::move(terminal)) {}

  /// Reports to the command at the terminal that the run has begun. From now on standard output and
  /// standard error are the file `driver.log` beside the run's logs, and events are recorded.
  void leave_terminal(const store::RunStore& store, const std::string& run);
  bool has_left() const { return log_.has_value(); }
  /// Records an event or another object, once it has left the terminal.
  template <class T>
  void add(const T& event) {
    if (log_) log_->add(event);
  }

 private:
  core::Descriptor terminal_;
  std::optional<EventLog> log_;
};

/// Calls `drive` in a process of its own, in a session of its own, and returns once that has left
/// the terminal: says how the run is followed. If it ends before, returns its exit code; what went
/// wrong it has said by itself. Signals are passed on to it meanwhile.
core::ExitCode drive_in_background(
    const Context& context, const std::function<core::ExitCode(Background& background)>& drive);

}  // namespace pipeline::cli

/// @file
/// A driver in a process of its own, without the terminal at which its run was started.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "core/error.hpp"
#include "core/file.hpp"
#include "driver/event_log.hpp"

namespace pipeline::driver {

/// Leaves the terminal for a driver in the background, and then records its events. Before
/// leave_terminal(), the driver writes to the terminal as any command does.
class Background {
 public:
  /// @param terminal a pipe to the command at the terminal, which waits for the report
  explicit Background(core::Descriptor terminal) : terminal_(std::move(terminal)) {}

  /// Reports to the command at the terminal that the run has begun. From now on standard output and
  /// standard error are the file `driver.log` beside the run's logs, and events are recorded.
  void leave_terminal(const store::RunStore& store, const std::string& run);
  bool has_left() const { return log_.has_value(); }
  /// Records an event or another object. Does nothing before leave_terminal().
  template <class T>
  void add(const T& event) {
    if (log_) log_->add(event);
  }

 private:
  core::Descriptor terminal_;
  std::optional<EventLog> log_;
};

/// A run whose driver has left the terminal.
struct BackgroundRun {
  std::string run;
  std::filesystem::path state;
  pid_t process = 0;
};

/// Calls `drive` in a process and a session of its own. Passes signals on to that process until it
/// has left the terminal or ended.
/// @param drive reports its errors itself; the process ends with its exit code
/// @return the run, or the exit code of a driver that ended before its run began
std::variant<BackgroundRun, core::ExitCode> start_in_background(
    const std::function<core::ExitCode(Background& background)>& drive);

}  // namespace pipeline::driver

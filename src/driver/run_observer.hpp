/// @file
/// The port through which a use case reports its progress, to a terminal, a log or a C++ program.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>
#include <pipeline/events.hpp>

#include "async/task.hpp"
#include "core/cancel.hpp"

namespace pipeline::driver {

class RunObserver {
 public:
  virtual ~RunObserver() = default;
  /// Called once, before any other function, after the first checks have succeeded.
  /// @param loop the loop of the run, which outlives the observer's use of it
  virtual void begin(asio::io_context& loop) = 0;
  virtual EventSink& events() = 0;
  /// Returns the source that stops the work; the observer may stop it at any time.
  virtual core::CancelSource& cancel() = 0;
  /// Receives a warning about the pipeline, before the run begins.
  /// @param text some lines, with position and source line, without the last line end
  /// @param warning its data, as warnings_json() returns it
  virtual void warn(const std::string& text, const nlohmann::json& warning) = 0;
  /// Receives a line about the work that is not an event, such as the reason of a wait.
  virtual void say(const std::string& line) = 0;
  /// Called when nothing more will be shown; may be called several times.
  virtual void end() {}
};

}  // namespace pipeline::driver

/// @file
/// The events of a detached run as lines of JSON for `pipe attach`, one file for each driver.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>
#include <pipeline/events.hpp>

#include "core/file.hpp"
#include "store/run_store.hpp"

namespace pipeline::driver {

/// Returns the event logs of a run, the oldest first. The files are beside the run's other logs,
/// and thus removed with the run and saved to its replica.
std::vector<std::filesystem::path> event_logs(const store::RunStore& store, const std::string& run);

class EventLog {
 public:
  /// Creates a file. Throws EnvironmentError.
  EventLog(const store::RunStore& store, const std::string& run);
  /// Appends an event with its time as the member `at`. Leaves out the output of steps, which is in
  /// their logs. On a full disk the event is lost, and the run continues.
  void add(const Event& event);
  /// Appends another object, such as the summary.
  void add(const nlohmann::json& object);

 private:
  core::Descriptor file_;
};

}  // namespace pipeline::driver

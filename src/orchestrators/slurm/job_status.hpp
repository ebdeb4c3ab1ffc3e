/// @file
/// Reads the files that an agent writes on its node: a step's end, and its output.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>

#include "async/task.hpp"
#include "core/cancel.hpp"
#include "core/lines.hpp"
#include "core/usage.hpp"
#include "orchestrators/agent_reports.hpp"

namespace pipeline::orchestrators::slurm {

/// A step's end, as its agent has seen it.
struct JobStatus {
  std::optional<int> exit_code, signal;
  int not_executed = 0;       ///< errno, if the command could not be started.
  bool stopped = false;       ///< The agent was asked to stop the step.
  bool no_container = false;  ///< The step's container was not started, or has lost its agent.
  core::Usage usage = {};
  std::chrono::milliseconds running{};
};

/// Returns true if Slurm may have caused this end of a step, so that the job's state matters, too.
bool may_be_caused_by_slurm(const JobStatus& status);

/// Returns the status in the file of JobPaths::ended(); nothing for a text that is not a status.
std::optional<JobStatus> parse_status(std::string_view text);

/// Reads the frames of an agent (agent/frames.hpp) from a file that grows.
class JobLog {
 public:
  using OnBytes = std::function<void(bool is_stderr, std::string_view bytes)>;
  JobLog(std::filesystem::path file, OnBytes on_bytes)
      : file_(std::move(file)), on_bytes_(std::move(on_bytes)) {}
  /// The most bytes that one read() takes from the file: a step may write faster than its output
  /// can be passed on, and must not keep the event loop from all else.
  static constexpr std::size_t max_read = 64 << 10;
  /// Passes on output that was added to the file since the last call. Returns true if there was
  /// any.
  bool read();
  /// Returns true if the last read() has left output in the file.
  bool has_more() const { return has_more_; }
  /// Reads what is left once the job has ended; stops before if `cancel` is stopped at once.
  /// @param has_end the agent has ended the log, but the end may not be visible yet
  async::Task<> read_rest(bool has_end, core::CancelSource& cancel);
  /// Returns true if the agent has marked the end of the output.
  bool ended() const { return ended_; }
  /// Returns the agent's report. AgentReport::waits is cleared by output and by progress.
  const AgentReport& report() const { return report_; }

 private:
  void take_line(std::string_view line);

  std::filesystem::path file_;
  OnBytes on_bytes_;
  std::uint64_t offset_ = 0;
  core::Lines lines_;
  bool ended_ = false, is_broken_ = false, has_more_ = false;
  AgentReport report_;
};

}  // namespace pipeline::orchestrators::slurm

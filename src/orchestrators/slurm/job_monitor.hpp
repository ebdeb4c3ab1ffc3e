/// @file
/// Watches all jobs of a run together: asks Slurm once for all of them, and looks into the one
/// folder in which their nodes write files for begins and ends.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "async/change.hpp"
#include "async/gate.hpp"
#include "async/joinable_task.hpp"
#include "orchestrators/slurm/client.hpp"
#include "orchestrators/slurm/job_states.hpp"
#include "orchestrators/slurm/submitter.hpp"

namespace pipeline::orchestrators::slurm {

class JobMonitor {
 public:
  using Clock = std::chrono::steady_clock;

  struct Entry {
    SubmittedJob job;
    bool has_begun = false, has_ended = false;
    std::string state, reason, node;  ///< From squeue's last answer that has the job.
    bool is_gone = false;             ///< The last answer does not have the job.
    Clock::time_point submitted{};
    Clock::time_point changed{};  ///< When `state` or `is_gone` changed, or watch() was called.
    Clock::time_point asked{};    ///< When the last question that squeue has answered was asked.
    std::function<void()> on_change;
  };

  /// @param events folder of the run's events; it exists
  JobMonitor(Client& client, std::filesystem::path events, const asio::any_io_executor& executor);
  /// Ends the tasks in the background; does nothing while jobs are watched. Must be awaited before
  /// this object is destroyed, once all jobs are forgotten. A second call while the first one waits
  /// returns together with it.
  async::Task<> settle();
  /// Returns true if nothing runs in the background.
  bool is_settled() const { return !looking_; }

  /// Begins to watch a job. @param name the job's name
  Entry& watch(const std::string& name, const SubmittedJob& job, std::function<void()> on_change);
  /// Stops watching a job.
  void forget(const std::string& name);
  /// Lets Slurm be asked soon, because a job is expected to change.
  void expect_news();
  /// Returns the view of a job for next_action(), without JobView::wanted.
  JobView view(const Entry& entry) const;
  /// Returns true if the job's number is still this job's, as far as Slurm's last answer tells.
  bool knows(const Entry& entry) const;
  /// Returns Slurm's last error, if it did not answer the last question.
  const std::string& error() const { return error_; }

 private:
  async::Task<> look_for_events();
  async::Task<> ask();
  void take(const JobQueue& queue, Clock::time_point asked);
  void take_event(const std::string& file);
  void start();

  Client& client_;
  std::filesystem::path events_;
  asio::any_io_executor executor_;
  std::map<std::string, Entry> entries_;  ///< Keyed by the job's name.
  async::Change has_work_, wants_news_;
  async::Gate has_settled_;                                ///< Closed while settle() waits.
  std::unique_ptr<async::JoinableTask> looking_, asking_;  ///< Null: nothing is watched.
  bool is_over_ = false;                                   ///< settle() ends the background tasks.
  Clock::time_point answered_ = Clock::now();              ///< When Slurm answered last.
  Clock::time_point asked_ = answered_;                    ///< When Slurm was asked last.
  std::chrono::milliseconds pause_;                        ///< Between two questions to Slurm.
  std::string error_;                                      ///< See error().
};

/// Returns true if squeue, asked after the moment `ended`, has answered that the job waits: Slurm
/// has queued it again.
bool waits_again(const JobMonitor::Entry& entry, JobMonitor::Clock::time_point ended);

}  // namespace pipeline::orchestrators::slurm

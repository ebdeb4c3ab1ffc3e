/// @file
/// Runs Slurm's commands (sbatch, squeue, scancel, sinfo) as programs, on this machine or on
/// a login node.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "async/semaphore.hpp"
#include "async/task.hpp"
#include "core/error.hpp"
#include "orchestrators/slurm/job_queue.hpp"
#include "orchestrators/slurm/login_node.hpp"

namespace pipeline::orchestrators::slurm {

/// Thrown if a command of Slurm has failed.
class SlurmError : public core::EnvironmentError {
 public:
  /// @param may_have_worked the controller could have received the request
  SlurmError(const std::string& message, std::vector<std::string> advice, bool may_have_worked)
      : EnvironmentError(message, std::move(advice)), may_have_worked_(may_have_worked) {}
  bool may_have_worked() const { return may_have_worked_; }
  /// Returns true if Slurm has no room for the job now.
  bool is_full() const;
  /// Returns true if the user or the account may not have so many jobs at a time.
  bool exceeds_submit_limit() const;

 private:
  bool may_have_worked_;
};

/// Returns the job's number in the output of `sbatch --parsable` (`4711` or `4711;CLUSTER`), where
/// a site's wrapper may print lines before it; empty if there is none.
std::string parse_job_id(std::string_view output);
/// Returns the last line of a command's output. On a login node, the files of the user's shell may
/// print lines before it.
std::string last_line(std::string_view output);
/// The cluster's limits of arrays.
struct ArrayLimits {
  unsigned max_array_size = 0;  ///< Numbers of tasks are below this; 0: there are no arrays.
  unsigned max_jobs = 0;        ///< Maximum number of jobs of all users at a time.
};
/// Returns the limits in the output of `scontrol show config`.
ArrayLimits parse_limits(std::string_view output);
/// Returns when a job would start, from the output of `sbatch --test-only` with times as seconds
/// since 1970; nothing if the output has no such time.
std::optional<std::chrono::sys_seconds> parse_expected_start(std::string_view output);
/// Returns true if a failed command that printed these errors may have had an effect, or may
/// succeed later: the controller's answer was lost, or the controller is overloaded.
bool is_lost_answer(std::string_view errors);
/// Returns true if these errors of sbatch mean that sbatch refuses the options whenever it is run.
bool is_permanent_refusal(std::string_view errors);

/// Runs Slurm's commands, only a few at a time, so that the controller is not overloaded.
class Client {
 public:
  /// @param host see LoginNode
  explicit Client(const std::string& host) : login_(host) {}
  virtual ~Client() = default;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  const LoginNode& login() const { return login_; }
  static constexpr std::chrono::seconds command_timeout{60};
  /// Timeout of a command whose answer is optional, while a person waits for it.
  static constexpr std::chrono::seconds short_timeout{5};
  /// Submits a job by sbatch. Returns the job's number. Throws SlurmError.
  virtual async::Task<std::string> submit(std::vector<std::string> options, std::string script);
  /// Returns in Slurm's words why Slurm would refuse any job with these options, for example
  /// because an account or a reservation does not exist. Empty if Slurm would not, or does not
  /// answer.
  virtual async::Task<std::string> refusal(std::vector<std::string> options);
  /// Returns how long a job with these options would wait now, in Slurm's estimate; nothing if
  /// Slurm gives none. Throws SlurmError if Slurm does not answer within `short_timeout`.
  virtual async::Task<std::optional<std::chrono::seconds>> expected_wait(
      std::vector<std::string> options);
  /// Returns all jobs of this user that Slurm still knows, ended ones included.
  virtual async::Task<std::vector<QueuedJob>> jobs();
  /// Returns the jobs of this name that Slurm still knows, ended ones included.
  virtual async::Task<std::vector<QueuedJob>> jobs_named(std::string name);
  /// Returns the jobs of this user that have not ended, with comments.
  virtual async::Task<std::vector<QueuedJob>> jobs_of_user();
  /// Runs scancel once for this job and all those that are cancelled with these options at the same
  /// time. A job that has ended already is not an error.
  async::Task<> cancel(std::string id, std::vector<std::string> options);
  /// Runs scancel with these options for several jobs.
  virtual async::Task<> cancel_all(std::vector<std::string> ids, std::vector<std::string> options);
  /// Returns the cluster's limits; without arrays if Slurm does not show them.
  virtual async::Task<ArrayLimits> limits();
  /// Returns why a node is drained; empty if it is not, or if Slurm does not show a reason.
  async::Task<std::string> node_reason(std::string node);
  /// Runs any other command. Returns its output. Throws SlurmError.
  async::Task<std::string> output_of(std::vector<std::string> command,
                                     std::chrono::seconds timeout = command_timeout);

 private:
  /// Jobs that one scancel is going to name.
  struct Cancellation;

  async::Task<std::string> call(std::vector<std::string> command, std::string input = {},
                                std::chrono::seconds timeout = command_timeout);

  async::Task<std::string> own_user();

  static constexpr unsigned max_calls = 4;
  LoginNode login_;
  std::string user_;  ///< squeue's option for the user's jobs, with the name on the login node.
  async::Semaphore call_slots_{max_calls};
  /// The cancellations that still accept jobs, keyed by scancel's options. Shared with the callers
  /// that wait for them.
  std::map<std::vector<std::string>, std::shared_ptr<Cancellation>> cancellations_;
};

}  // namespace pipeline::orchestrators::slurm

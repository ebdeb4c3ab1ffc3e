/// @file
/// The jobs that squeue prints, and the words by which scancel accepts them. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace pipeline::orchestrators::slurm {

/// A line of squeue.
struct QueuedJob {
  std::string id;  ///< `4711`, a task `4711_3`, or the tasks of an array that wait: `4711_[3-7,9]`.
  std::string state, reason, node, name;
  std::string comment = {};  ///< Empty unless Client::jobs_of_user() returned the job.
  bool operator==(const QueuedJob&) const = default;
};

/// Returns the jobs in the output of squeue with the format of Client::jobs().
std::vector<QueuedJob> parse_queue(std::string_view output);

/// Returns the number of a job, or of a task's array: `4711` for `4711_3`.
std::string_view array_of(std::string_view id);

/// Returns the jobs in fewer words, as scancel takes them: `4711_[0-3,7]`. Each word has at most
/// some thousand characters.
std::vector<std::string> shortened(const std::vector<std::string>& ids);

/// Finds jobs in an answer of squeue.
class JobQueue {
 public:
  explicit JobQueue(std::vector<QueuedJob> jobs);
  JobQueue(const JobQueue&) = delete;
  JobQueue& operator=(const JobQueue&) = delete;
  /// Returns the line that has the job; null if there is none.
  const QueuedJob* find(const std::string& id) const;
  /// Returns true for a task that is not listed, but whose array is: it was cancelled before its
  /// begin, or has ended long ago.
  bool has_only_array_of(const std::string& id) const;

 private:
  /// Tasks of an array in one line of squeue: each `step`-th of those from `first` to `last`.
  struct Tasks {
    unsigned first, last, step;
    const QueuedJob* job;
  };
  std::vector<QueuedJob> jobs_;
  std::map<std::string_view, const QueuedJob*> by_id_;
  std::map<std::string_view, std::vector<Tasks>> arrays_;  ///< Keyed by the array's number.
};

}  // namespace pipeline::orchestrators::slurm

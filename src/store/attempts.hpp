/// @file
/// Records of the attempts of steps, and of the tasks of attempts.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <pipeline/events.hpp>

#include "core/usage.hpp"

namespace pipeline::store {

class Database;

struct AttemptRecord {
  std::string run, step;
  unsigned number = 1;
  WallTime started{}, ended{};
  std::chrono::milliseconds took{};
  std::optional<int> exit_code;
  std::string failure_kind, message;
  std::vector<std::string> hints, details;  ///< As in FailureRecord.
  std::string log;                          ///< File name below the store's logs/ folder.
  std::vector<event::Gpu> gpus;             ///< GPUs that the attempt held.
  core::Usage usage;
  core::Phases phases;
  std::string code;         ///< Digest of the tree of the step's code, hex; empty if unknown.
  std::string node;         ///< Name of the machine that ran it; empty if unknown.
  std::string image;        ///< Id of the image, or the interpreter, that ran it; empty if unknown.
  std::string stored = {};  ///< For people, how each output came into the store.
  bool was_preempted = false;  ///< As in orchestrators::AttemptResult.
};

/// A process, container or pod of an attempt.
struct TaskRecord {
  unsigned rank = 0;  ///< Counted from 0 in each attempt.
  std::optional<int> exit_code;
  std::string node;  ///< As in AttemptRecord.
  std::string log;   ///< As in AttemptRecord.
  core::Usage usage;
  unsigned node_rank = 0;           ///< Number among the step's nodes.
  std::vector<unsigned> gpus = {};  ///< Indices of the attempt's GPUs that it took.
  std::optional<std::chrono::milliseconds> running = {};  ///< As in core::Phases.
  bool has_failed_first = false;  ///< The attempt failed because this task did.
  bool operator==(const TaskRecord&) const = default;
};

class Attempts {
 public:
  explicit Attempts(Database& database) : database_(database) {}

  /// Inserts or replaces an attempt. Call it in a transaction if it has several tasks.
  /// @param tasks may be empty for an attempt with one task: the attempt's record describes it
  void put(const AttemptRecord& attempt, std::span<const TaskRecord> tasks = {});
  std::vector<AttemptRecord> list(const std::string& run, const std::string& step);
  /// Returns the attempts of all steps of a run, by step and number.
  std::vector<AttemptRecord> list(const std::string& run);
  /// Returns the tasks of a recorded attempt by rank. An attempt that was put without tasks has one
  /// task, of rank 0.
  std::vector<TaskRecord> tasks(const AttemptRecord& attempt);
  /// Calls `use` with each attempt of the pipeline's runs, in the order in which they began.
  void for_each(const std::string& pipeline, const std::function<void(const AttemptRecord&)>& use);
  /// Removes all attempts of a step, with their tasks and metrics.
  void remove(const std::string& run, const std::string& step);

 private:
  Database& database_;
};

}  // namespace pipeline::store

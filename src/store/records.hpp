/// @file
/// Records of runs, their steps and the outputs of these.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <pipeline/events.hpp>

#include "core/digest.hpp"
#include "store/process_id.hpp"

namespace pipeline::store {

/// How a driver's liveness is determined: by a kernel lock, by a heartbeat, or, for drivers of an
/// earlier version, only by the process.
enum class LivenessProbe { process, lock, heartbeat };

/// A Lease of a cluster, and the Job of the same name whose pods acquire it.
struct LeaseId {
  std::string context;  ///< Context in the kubeconfig of the user who started the run; if empty,
                        ///< the current context.
  std::string name_space, name;
  bool operator==(const LeaseId&) const = default;
};

/// The driver of a run: a process or, if a Lease is named, the holder of that Lease.
struct Driver {
  ProcessId process;
  LeaseId lease;
  LivenessProbe probe = LivenessProbe::process;  ///< Filled by Runs::add() and Runs::resume().
  std::string host{};  ///< The process's machine, for messages; filled by the same functions.
  bool has_lease() const { return !lease.name.empty(); }
};

struct RunRecord {
  std::string id, pipeline, orchestrator;
  std::string file;        ///< Absolute path of the pipeline's file.
  std::string parameters;  ///< JSON object.
  std::string git_commit;  ///< Empty without a repository.
  bool git_dirty = false;
  RunStatus status = RunStatus::running;
  WallTime started{}, ended{};       ///< ended: 0 while the run is running.
  std::chrono::milliseconds took{};  ///< Measured by the monotonic clock.
  Driver driver;
  std::string
      same_as;  ///< The run whose steps this run reused entirely; it then has no rows of its own.
  std::size_t steps = 0, cached = 0, failed = 0;
  std::vector<std::string> tags;  ///< Tags of the pipeline when the run started, and `pipe tag`.
  std::string note;               ///< The text that `pipe note` has recorded.
};

struct OutputRecord {
  std::string name, file_name;
  core::Digest digest;
  bool is_directory = false;
  std::uint64_t bytes = 0;
  bool temp = false;  ///< The artifact may have been removed (OutputSpec::temp).
};

/// The failure of a step or an attempt, without its message.
struct FailureRecord {
  std::string kind;                  ///< As to_string() of FailureKind has it.
  std::vector<std::string> hints;    ///< Suggestions for the user.
  std::vector<std::string> details;  ///< The last lines of the step's log, or those of a build.
  bool operator==(const FailureRecord&) const = default;
};

struct StepRecord {
  std::string run, name;
  StepStatus status = StepStatus::pending;
  std::string key;          ///< Digest of the key's parts, hex; empty until known.
  std::string reused_from;  ///< The run that made the result, for a reused step.
  WallTime started{}, ended{};
  std::chrono::milliseconds took{};
  unsigned attempts = 0;
  std::string image;       ///< Image id or interpreter.
  std::string message;     ///< Why the step failed or was skipped.
  std::string parameters;  ///< JSON object.
  std::vector<OutputRecord> outputs;
  FailureRecord failure;  ///< Empty for a step that has not failed.
};

}  // namespace pipeline::store

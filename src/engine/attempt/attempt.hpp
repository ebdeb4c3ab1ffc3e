/// @file
/// An attempt of a step, without the orchestrator's part: prepares folders, code, inputs and log,
/// enforces the timeout, and stores the outputs.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/attempt/checkpoint.hpp"
#include "engine/attempt/work_folders.hpp"
#include "engine/data/data_input.hpp"
#include "engine/data/download.hpp"
#include "engine/gpu/gpu_reserver.hpp"
#include "engine/graph/gather.hpp"
#include "engine/run.hpp"

namespace pipeline::engine {

/// References to objects that outlive the attempt.
struct AttemptContext {
  const RunContext& run;
  core::CancelSource& stop;         ///< Ends the attempt.
  std::set<core::Digest>& checked;  ///< Artifacts whose content need not be read again in this run.
  /// The steps with an output that turned out to be damaged in this run, in the order of discovery.
  std::vector<std::string>& damaged;
  WorkFolders& folders;
  DataInputs& data;  ///< The user's data as the step's key covers it.
  Downloads& downloads;
};

/// Options of one attempt.
struct AttemptOptions {
  unsigned number;       ///< From 1.
  bool joins;            ///< An earlier driver may have begun the attempt; see Attempt::joins.
  std::string log_name;  ///< See StatePaths::log_file().
  /// Folder with the step's progress. Null: the step keeps no progress, or the attempt gets a
  /// private folder, because another run uses the step's.
  std::shared_ptr<Checkpoint> checkpoint = {};
  /// Memory limit that `retry.on_oom` has raised; replaces the step's limit.
  std::optional<Bytes> memory = {};
  /// See AttemptSpec::avoided_nodes.
  std::vector<std::string> avoided_nodes = {};
  /// Set: a shell runs in place of the command, and the attempt's outputs are not stored.
  std::optional<orchestrators::ShellRequest> shell = {};
  /// Variables of the shell, besides the step's own.
  StringMap variables = {};
};

/// Runs one attempt of the step; its failure is in the result. Throws EnvironmentError for failures
/// of this machine (such as a full disk).
/// @param outputs_of finds outputs of earlier steps; kept until the attempt has ended
/// @param gpus       released as soon as no process of the step is running, before outputs are
/// stored
async::Task<AttemptOutcome> run_attempt(AttemptContext context, const StepSpec& step,
                                        AttemptOptions options, OutputsOf outputs_of,
                                        GpuReservation gpus);

}  // namespace pipeline::engine

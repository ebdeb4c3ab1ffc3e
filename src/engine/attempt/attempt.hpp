/// @file
/// One attempt of a step, without the orchestrator's part: prepares folders, code, inputs and log,
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

struct AttemptContext {
  const RunContext& run;
  core::CancelSource& stop;         ///< Ends the attempt.
  std::set<core::Digest>& checked;  ///< Artifacts whose content need not be read again in this run.
  WorkFolders& folders;
  DataInputs& data;  ///< The user's data as the step's key covers it.
  Downloads& downloads;
};

/// Options of one attempt.
struct AttemptOptions {
  unsigned number;       ///< From 1.
  bool joins;            ///< See Attempt::joins.
  std::string log_name;  ///< See StatePaths::log_file().
  /// Folder with the step's progress; null: the step has none, or a private one for this attempt.
  std::shared_ptr<Checkpoint> checkpoint = {};
  /// Limit that `retry.on_oom` has raised; replaces the step's.
  std::optional<Bytes> memory = {};
  /// See AttemptSpec::avoided_nodes.
  std::vector<std::string> avoided_nodes = {};
  /// Runs this in place of the command; the attempt's outputs are not stored then.
  std::optional<orchestrators::ShellRequest> shell = {};
  /// Variables of that besides the step's own.
  StringMap variables = {};
};

/// Runs one attempt of the step; its failure is in the result. Throws EnvironmentError for failures
/// of this machine (such as a full disk).
/// @param outputs outputs of earlier steps; they are kept until the attempt has ended
/// @param gpus    released as soon as no process of the step is running; outputs are stored without
/// them
async::Task<AttemptOutcome> run_attempt(AttemptContext context, const StepSpec& step,
                                        AttemptOptions options, OutputsOf outputs,
                                        GpuReservation gpus);

}  // namespace pipeline::engine

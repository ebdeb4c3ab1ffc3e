/// @file
/// A shell instead of a step's command, with its environment, code, inputs, variables and GPUs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <pipeline/events.hpp>

#include "engine/cache/remote_cache.hpp"
#include "engine/graph/gather.hpp"
#include "engine/services.hpp"

namespace pipeline::engine {

/// Folder of the state folder for the files that shells write.
inline constexpr const char* shells_folder = "shells";

struct StepShell {
  const StepSpec& step;
  EventSink& events;
  core::CancelSource& stop;      ///< Ends the shell at once.
  OutputsOf outputs_of;          ///< Finds the outputs of the steps before this one.
  std::string run_id;            ///< The run of the attempt, for PIPE_RUN_ID.
  unsigned number = 1;           ///< The attempt's number.
  std::filesystem::path folder;  ///< For outputs and scratch files; removed at the end.
  orchestrators::ShellRequest request;
  /// Set for a step with nodes: the process in whose place the shell runs. The shell has the
  /// variables of this process, as if all nodes were this machine, and the GPUs of its node alone.
  /// `process->addresses` is not used.
  std::optional<orchestrators::NodeProcess> process = {};
  RemoteCache* remote_cache = nullptr;  ///< Must outlive the shell; null: none.
};

/// Waits for the step's GPUs, runs the shell to its end, and removes what it has written. The
/// step's environment must be ready. Throws as the preparation of an attempt does.
async::Task<orchestrators::AttemptResult> open_shell(Services services, StepShell options);

}  // namespace pipeline::engine

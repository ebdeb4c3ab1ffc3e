/// @file
/// The pipeline, the state folder and the settings with which a command or a C++ program works.
#pragma once

#include <filesystem>
#include <string>

#include <pipeline/settings.hpp>

#include "driver/invocation.hpp"
#include "lockfile/lock_file.hpp"

namespace pipeline {
class Pipeline;
class Executor;
}  // namespace pipeline

namespace pipeline::driver {

/// The invocation is recorded with a run; the other members concern only this process.
struct WorkspaceOptions : Invocation {
  std::filesystem::path state;  ///< If empty, PIPE_HOME or `.pipe`.

  // Set by a C++ program: its pipeline replaces the file, and its name replaces `pipe`.
  const Pipeline* program = nullptr;
  std::string name = "pipe";
  Executor* executor = nullptr;  ///< Replaces the orchestrator.

  Bytes keep_storage = 0;                ///< Budget of the state folder, from a profile; 0: none.
  std::string page;                      ///< Address of `pipe serve`, from a profile.
  std::string service_account = "pipe";  ///< Service account of a driver in the cluster.
  lockfile::LockOptions lock;
};

}  // namespace pipeline::driver

/// @file
/// What the user asked for, as plain values.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "detached/invocation.hpp"

namespace pipeline {
class Pipeline;
class Executor;
}  // namespace pipeline

namespace pipeline::cli {

/// Of `clean`.
struct CleanOptions {
  bool containers = false, images = false, runs = false, all = false, dry_run = false;
  unsigned keep = 0;  ///< Runs that stay, the newest ones.
};

/// Of `instances`; zero and empty ask for nothing.
struct InstancesOptions {
  unsigned gpus = 0;
  double cpus = 0;
  std::string memory, gpu_memory, gpu_class, compute_capability, architecture;
};

/// Of the commands that look at runs: runs, show, logs, artifacts, cancel.
struct InspectOptions {
  std::string run = "latest";
  std::string pipeline;  ///< Only runs of this one; empty: all.
  std::string tag;       ///< Only runs of pipelines with this one; empty: all.
  unsigned limit = 20;
  bool follow = false;
  unsigned attempt = 0;  ///< 0: the last one.
  std::filesystem::path copy_to;
  bool now = false;
  bool force = false;  ///< cancel: the user knows that the driver is gone.
};

/// The invocation is what a run is asked for, and what is recorded with it; the rest concerns this
/// process alone. `step` of logs and artifacts is STEP or STEP.OUTPUT.
struct Options : detached::Invocation {
  bool json = false;  ///< `--output json`
  bool verbose = false;
  std::filesystem::path state;  ///< Empty: PIPE_HOME, or `.pipe`.

  // Of a C++ program: its pipeline takes the place of the file, and its name that of `pipe`.
  const Pipeline* program = nullptr;
  std::string name = "pipe";
  Executor* executor = nullptr;  ///< Takes the place of the orchestrator.

  bool detach = false;                   ///< run
  std::string service_account = "pipe";  ///< Of the driver of a run with `detach`.
  InspectOptions inspect;
  CleanOptions clean;
  InstancesOptions instances;
  std::string action, subject;         ///< kubernetes
  std::filesystem::path folder = ".";  ///< init
  std::string shell;                   ///< completion
  std::string words;                   ///< __complete: what is to be completed.

  bool takes_profile = false;   ///< The command has --profile.
  std::set<std::string> given;  ///< Long names of the options on the command line, as `--jobs`.
};

}  // namespace pipeline::cli

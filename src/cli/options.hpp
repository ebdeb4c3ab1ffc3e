/// @file
/// The parsed command line as plain values.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <pipeline/settings.hpp>

#include "detached/invocation.hpp"
#include "lock/lock_file.hpp"

namespace pipeline {
class Pipeline;
class Executor;
}  // namespace pipeline

namespace pipeline::cli {

/// Options of `clean`.
struct CleanOptions {
  bool containers = false, images = false, environments = false, runs = false, all = false;
  bool dry_run = false;
  unsigned keep = 0;         ///< Number of newest runs that are kept.
  std::string keep_storage;  ///< Bytes of artifacts, or of images, that are kept; empty: none.
};

/// Options of `instances`; zero and empty members are no requirement.
struct InstancesOptions {
  unsigned gpus = 0;
  double cpus = 0;
  std::string memory, gpu_memory, gpu_class, compute_capability, architecture;
};

/// Options of the commands that show runs: runs, show, logs, artifacts, cancel.
struct InspectOptions {
  std::string run = "latest";
  std::string pipeline;  ///< Only runs of this pipeline; empty: all.
  std::string tag;       ///< Only runs with this tag; empty: all.
  unsigned limit = 20;
  bool follow = false;
  unsigned attempt = 0;  ///< 0: the last one.
  std::filesystem::path copy_to;
  std::string name;        ///< artifacts: the published name.
  std::string publish_as;  ///< artifacts: publish the output under this name.
  unsigned promote = 0;    ///< artifacts: version of `name` to make current; 0: none.
  bool demote = false;     ///< artifacts: make the version current that was before.
  bool now = false;
  bool force = false;                ///< cancel: the user asserts that the driver is gone.
  std::string where;                 ///< runs: an expression; empty: all.
  std::string sort;                  ///< runs: the value to sort by.
  std::vector<std::string> columns;  ///< runs: values to show.
  std::vector<std::string> runs;     ///< compare: the runs.
  bool all = false;                  ///< compare: also what is equal.
  bool csv = false;                  ///< metrics: every point, as CSV.
  std::vector<std::string> tags;     ///< tag: those to add.
  std::vector<std::string> removed;  ///< tag: those to remove.
  std::optional<std::string> note;   ///< note: the text.
  std::string format = "cyclonedx";  ///< sbom: cyclonedx, spdx or provenance; export: its form.
  std::string license;               ///< export: an SPDX identifier for the crate.
  std::vector<std::string> command;  ///< shell: what is executed; empty: a shell.
};

/// The invocation is recorded with the run; the other members concern only this process. `step` of
/// logs and artifacts is STEP or STEP.OUTPUT.
struct Options : detached::Invocation {
  bool json = false;  ///< `--output json`.
  bool verbose = false;
  std::filesystem::path state;  ///< If empty, PIPE_HOME or `.pipe`.

  // Set by a C++ program: its pipeline replaces the file, and its name replaces `pipe`.
  const Pipeline* program = nullptr;
  std::string name = "pipe";
  Executor* executor = nullptr;  ///< Replaces the orchestrator.

  Bytes keep_storage = 0;                ///< Budget of the state folder, from a profile; 0: none.
  bool detach = false;                   ///< Command run.
  std::string service_account = "pipe";  ///< Service account of the driver of a run with `detach`.
  lock::LockOptions lock;                ///< Commands run, plan, build and lock.
  InspectOptions inspect;
  CleanOptions clean;
  InstancesOptions instances;
  std::string action, subject;         ///< Command kubernetes.
  std::filesystem::path folder = ".";  ///< Command init.
  std::string shell;                   ///< Command completion.
  std::string words;                   ///< Command __complete: the text to complete.

  std::string format = "mermaid";  ///< Command graph.
  bool patch_only = false;         ///< Command advise.
  std::string host = "127.0.0.1";  ///< Command serve.
  std::string bucket_of;           ///< Command serve: a profile; empty: a state folder is served.
  unsigned short port = 7473;      ///< Command serve; 0: any that is free.

  bool takes_profile = false;  ///< The command has --profile.
  bool takes_file = false;     ///< The command has the argument FILE.
  std::set<std::string>
      given;  ///< Long names of the options on the command line, such as `--jobs`.
};

}  // namespace pipeline::cli

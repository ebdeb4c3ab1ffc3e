/// @file
/// What the user asked for, as plain values: all that any command can be told.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "settings/artifact_store.hpp"

namespace pipeline {
class Pipeline;
class Executor;
}  // namespace pipeline

namespace pipeline::cli {

struct Options {
  bool json = false;  ///< `--output json`

  // Of a C++ program: its pipeline takes the place of the file, and its name that of `pipe`.
  const Pipeline* program = nullptr;
  std::string name = "pipe";
  std::filesystem::path root;    ///< Takes the place of that pipeline's own; empty: it does not.
  Executor* executor = nullptr;  ///< Takes the place of the orchestrator.

  // Commands that read a pipeline file.
  std::filesystem::path file = "pipeline.yaml";
  std::map<std::string, std::string> parameters;
  std::string profile;  ///< Empty: none.
  std::string orchestrator = "docker";
  std::string context, name_space;  ///< Of the cluster.
  std::string claim;                ///< Through which its pods see the state folder; by a profile.
  std::filesystem::path claim_path;
  settings::ArtifactStoreSettings artifact_store;  ///< Likewise.
  std::string step;  ///< Of run, plan, build, render, logs; artifacts: STEP or STEP.OUTPUT.
  std::string execution_mode;  ///< Empty: the file's.
  unsigned jobs = 0;
  bool no_cache = false;
  bool detach = false;
  std::string service_account = "pipe";  ///< Of the driver of a run with `detach`.
  bool verbose = false;
  std::filesystem::path template_dir;

  // Commands about runs.
  std::filesystem::path state;  ///< Empty: PIPE_HOME, or `.pipe`.
  std::string run = "latest";
  std::string pipeline;
  unsigned limit = 20;
  bool follow = false;
  unsigned attempt = 0;  ///< 0: the last one.
  std::filesystem::path copy_to;
  bool now = false;

  // clean
  bool containers = false, images = false, runs = false, all = false, dry_run = false;
  unsigned keep = 0;

  // instances; zero and empty ask for nothing.
  unsigned gpus = 0;
  double cpus = 0;
  std::string memory, gpu_memory, gpu_class, compute_capability, architecture;

  bool takes_profile = false;  ///< The command has --profile.
  std::set<std::string>
      given;  ///< Long names of the options that were on the command line, as `--jobs`.
  std::string action, subject;         ///< kubernetes
  std::filesystem::path folder = ".";  ///< init
  std::string shell;                   ///< completion
  std::string words;                   ///< __complete: what is to be completed.
};

}  // namespace pipeline::cli

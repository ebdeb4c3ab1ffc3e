/// @file
/// The parsed command line as plain values.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "driver/cancellation.hpp"
#include "driver/clean_up.hpp"
#include "driver/workspace_options.hpp"

namespace pipeline::cli {

/// Options of `instances`; zero and empty members do not restrict.
struct InstancesOptions {
  unsigned gpus = 0;
  double cpus = 0;
  std::string memory, gpu_memory, gpu_class, compute_capability, architecture;
};

struct RunsOptions {
  std::string pipeline;              ///< Only runs of this pipeline; empty: all.
  std::string tag;                   ///< Only runs with this tag; empty: all.
  std::string where;                 ///< An expression; empty: all.
  std::string sort;                  ///< The value to sort by.
  std::vector<std::string> columns;  ///< Values to show.
  unsigned limit = 20;               ///< 0: all.
};

struct ArtifactsOptions {
  std::string name;        ///< The published name.
  std::string publish_as;  ///< Publish the output under this name.
  unsigned promote = 0;    ///< Version of `name` to make current; 0: none.
  bool demote = false;     ///< Make the previous version current again.
};

struct CompareOptions {
  std::vector<std::string> runs;
  bool all = false;  ///< Show also the rows that are equal in all runs.
};

struct TagOptions {
  std::vector<std::string> added, removed;
};

/// Options of `sbom` and `export`.
struct DocumentOptions {
  std::string format = "cyclonedx";  ///< The default of `sbom`; `export` requires the option.
  std::string license;               ///< An SPDX identifier for the crate.
};

/// Options of `completion` and `__complete`.
struct CompletionOptions {
  std::string shell;
  std::string kind;  ///< The kind of candidates to print: runs, steps, artifacts or profiles.
};

struct AnswerOptions {
  std::string yes_or_no, note;
};

struct AdviseOptions {
  bool patch_only = false;
};

struct GraphOptions {
  std::string format = "mermaid";
};

struct InitOptions {
  std::filesystem::path folder = ".";
};

/// `document` is `rbac`; `subject` is that of the binding, `KIND:NAME`, or empty for a placeholder.
struct KubernetesOptions {
  std::string document, subject;
};

struct LogsOptions {
  bool follow = false;
  std::optional<unsigned> rank = {};  ///< Only the lines of this process of a step with nodes.
};

struct MetricsOptions {
  bool csv = false;  ///< Every point, as CSV.
};

struct ShowOptions {
  bool wide = false;  ///< Show also phases, usage and nodes.
  bool html = false;  ///< `--output html`.
};

struct NoteOptions {
  std::optional<std::string> text;
};

struct ShellOptions {
  std::optional<unsigned> rank = {};  ///< The process of a step with nodes.
  std::vector<std::string> command;   ///< The command to execute; empty: a shell.
};

struct ServeOptions {
  std::string host = "127.0.0.1";
  unsigned short port = 7473;  ///< 0: any that is free.
  std::string remote_profile;  ///< A profile; empty: a state folder is served.
};

/// Options of all commands. `step` of artifacts and export may also be STEP.OUTPUT.
struct Options : driver::WorkspaceOptions {
  bool json = false;  ///< `--output json`.
  bool verbose = false;
  bool quiet = false;   ///< Commands that show a run show only its end.
  bool detach = false;  ///< `run` and `resume` return once the run has begun.

  // Shared by several commands.
  std::string run = "latest";
  unsigned attempt = 0;           ///< 0: the last one.
  std::filesystem::path copy_to;  ///< File or folder for what the command writes.
  std::string artifact;  ///< The argument of why and used, which driver::artifact_named() reads.

  // For single commands.
  AdviseOptions advise;
  AnswerOptions answer;
  ArtifactsOptions artifacts;
  driver::CancelRequest cancel;
  driver::CleanUp clean;
  CompareOptions compare;
  CompletionOptions completion;
  DocumentOptions document;
  GraphOptions graph;
  InitOptions init;
  InstancesOptions instances;
  KubernetesOptions kubernetes;
  LogsOptions logs;
  MetricsOptions metrics;
  NoteOptions note;
  RunsOptions runs;
  ServeOptions serve;
  ShellOptions shell;
  ShowOptions show;
  TagOptions tag;

  bool takes_profile = false;   ///< The command has --profile.
  bool takes_file = false;      ///< The command has the argument FILE.
  std::set<std::string> given;  ///< Long names of the given options, such as `--jobs`.
};

}  // namespace pipeline::cli

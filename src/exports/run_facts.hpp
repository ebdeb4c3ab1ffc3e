/// @file
/// The facts of a run that the exports need.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/run_store.hpp"

namespace pipeline::exports {

/// An artifact that a step took.
struct TakenArtifact {
  core::Digest digest;
  std::string maker = {};   ///< `STEP.OUTPUT`; empty for data from outside of pipelines.
  std::string run = {};     ///< The run in which the maker made the artifact.
  bool is_folder = false;   ///< The digest is that of a tree, by an algorithm of pipe's own.
  std::string source = {};  ///< For data from outside of pipelines: the name of its file, its
                            ///< address, or its published name.
};

struct InputFact {
  std::string name;
  std::vector<TakenArtifact> artifacts;  ///< Several for a gathered input; empty if unknown.
};

struct StepFacts {
  store::StepRecord record;
  std::string command;  ///< The command in the step's key.
  /// Code files or, for a step with very many, their folders, each with its digest.
  std::vector<std::pair<std::string, core::Digest>> code;
  std::vector<InputFact> inputs;
};

struct RunFacts {
  store::RunRecord run;
  std::vector<StepFacts> steps;
  std::string version;  ///< Version of the program that writes the export.
};

/// Returns the facts of a run.
/// @param version version of the program that writes the export
RunFacts facts_of(store::RunStore& store, const store::RunRecord& run, std::string version);

/// Returns the facts of the step that made the artifact, and of that step's run; nothing if no step
/// made the artifact.
/// @param step,run the step that is meant, if several made an equal artifact
std::optional<RunFacts> facts_of_maker(store::RunStore& store, const core::Digest& artifact,
                                       const std::string& step, const std::string& run,
                                       std::string version);

/// Formats the time by RFC 3339; empty for the zero time.
std::string rfc3339(WallTime time);

}  // namespace pipeline::exports

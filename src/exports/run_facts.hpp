/// @file
/// What is known of a run, as the exports need it.
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
  std::string maker;  ///< `STEP.OUTPUT`; empty for data from outside of pipelines.
  std::string run;    ///< The maker's.
};

struct InputFact {
  std::string name;
  std::vector<TakenArtifact> artifacts;  ///< Several for a gathered input; none if not known.
};

struct StepFacts {
  store::StepRecord record;
  std::string command;                                     ///< As in the step's key.
  std::vector<std::pair<std::string, core::Digest>> code;  ///< Files, or their folders.
  std::vector<InputFact> inputs;
};

struct RunFacts {
  store::RunRecord run;
  std::vector<StepFacts> steps;
  std::string version;  ///< Of the program that writes the export.
};

RunFacts facts_of(store::RunStore& store, const store::RunRecord& run, std::string version);

/// Returns the facts of the step that made the artifact, and of its run, whichever run reused it;
/// nothing if no step did.
std::optional<RunFacts> facts_of_maker(store::RunStore& store, const core::Digest& artifact,
                                       std::string version);

/// Formats the time as RFC 3339 says; empty for the zero time.
std::string rfc3339(WallTime time);

}  // namespace pipeline::exports

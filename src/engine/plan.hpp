/// @file
/// Plans a run: its action for each step, with the reason.
#pragma once

#include <string>
#include <vector>

#include <pipeline/spec.hpp>

#include "engine/options.hpp"
#include "engine/services.hpp"

namespace pipeline::engine {

/// The planned action for a step.
struct StepPlan {
  std::string step;
  /// depends: reused if the outputs that it waits for are the same as before, or skipped if a
  /// condition over them is false. unknown: the run makes the instances from an output that is not
  /// known yet.
  enum class Action { run, reuse, depends, skip, unknown };
  Action action = Action::run;
  /// The pipeline's step: `step` itself, or the step that `step` is an instance of.
  const StepSpec* spec = nullptr;
  RareText reused_from;  ///< For `reuse`: the run that made the result.
  /// The reasons of the action: `code train.py changed`, `never run before`. The steps of a
  /// pipeline that never ran share one list.
  CopyOnWrite<std::vector<std::string>> changes;
  /// Further lines for the user: changes at the source of the step's data, which a run does not
  /// take by itself, and the step's question, services, nodes and expected wait.
  RareList<std::string> notes;
  RareList<store::KeyPart> key;
  RareText environment;  ///< Description of the environment.
  RareText build;        ///< The image to build, with the reason, if the environment is not ready.
};

/// Plans a run without side effects.
/// @param with_keys whether to fill StepPlan::key, and StepPlan::environment also where nothing is
/// to build: these members take most of the memory
async::Task<std::vector<StepPlan>> plan(Services services, EngineOptions options,
                                        bool with_keys = true);

}  // namespace pipeline::engine

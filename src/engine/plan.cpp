#include <algorithm>
#include <unordered_map>

#include "core/graph.hpp"
#include "engine/decision.hpp"
#include "engine/run.hpp"

namespace pipeline::engine {
namespace {

using store::KeyPart;

/// The changes that a step has of its own, besides those that its inputs may bring.
std::vector<std::string> own_changes(const std::vector<KeyPart>& before, const std::vector<KeyPart>& own) {
  std::vector<KeyPart> old = before;
  std::erase_if(old, [](const KeyPart& part) { return part.name.starts_with("input "); });
  return differences(old, own);
}

}  // namespace

Task<std::vector<StepPlan>> plan(const PipelineSpec& pipeline, Orchestrator& orchestrator, store::RunStore& runs, store::ArtifactStore& artifacts,
                                 store::StatIndex& stats, const CodeProvider& code, RunOptions options) {
  const auto selected = select_steps(pipeline, options.only_step);
  const Graph graph(needs_of(pipeline, selected));
  const auto order = graph.topological_order();
  std::unordered_map<std::string_view, StepIndex> position;
  for (StepIndex i = 0; i < selected.size(); ++i) position.emplace(pipeline.steps[selected[i]].name, i);

  Decisions decisions(pipeline, runs, artifacts, stats, code);
  std::vector<StepPlan> plans(selected.size());
  std::vector<std::vector<store::OutputRecord>> outputs(selected.size());
  const OutputsOf outputs_of = [&](const SourceSpec& source) {
    const auto i = position.at(source.step);
    return MadeOutput{&pipeline.steps[selected[i]], &*std::ranges::find(outputs[i], source.output, &store::OutputRecord::name)};
  };

  for (const auto i : *order) {
    const auto& step = pipeline.steps[selected[i]];
    auto& plan = plans[i];
    plan.step = step.name;
    const auto environment = co_await orchestrator.environment(step);
    plan.environment = environment.description;
    if (!environment.ready) plan.build = environment.reason;
    const auto last = runs.last_key_parts(pipeline.name, step.name);

    std::string waits_for;
    for (const auto& input : step.inputs)
      for (const auto& source : input.sources)
        if (plans[position.at(source.step)].action != StepPlan::Action::reuse) waits_for = source.step;

    if (waits_for.empty() && !environment.id.empty()) {
      auto key = decisions.key(step, environment.id, outputs_of);
      plan.key = std::move(key.parts);
      auto entry = options.use_cache && step.cache ? decisions.success_of(key.key) : std::nullopt;
      if (entry) {
        plan.action = StepPlan::Action::reuse;
        plan.reused_from = entry->run;
        outputs[i] = std::move(entry->outputs);
        continue;
      }
      plan.changes = last ? differences(last->second, plan.key) : std::vector<std::string>{"never run before"};
    } else {
      plan.key = decisions.own_parts(step, environment.id);
      plan.changes = last ? own_changes(last->second, plan.key) : std::vector<std::string>{"never run before"};
      if (!waits_for.empty() && plan.changes.empty()) {
        plan.action = StepPlan::Action::depends;
        plan.changes = {"reused if '" + waits_for + "' gives the same as before"};
      }
    }
    if (!step.cache) {
      plan.action = StepPlan::Action::run;
      plan.changes = {"cache: false"};
    } else if (!options.use_cache) {
      plan.action = StepPlan::Action::run;
      plan.changes = {"--no-cache"};
    } else if (plan.changes.empty()) {
      plan.changes = {"its earlier result is gone"};
    }
  }
  stats.save();
  co_return plans;
}

}  // namespace pipeline::engine

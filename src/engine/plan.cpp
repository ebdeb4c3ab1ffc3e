#include <algorithm>
#include <unordered_map>

#include "core/graph.hpp"
#include "engine/cache_exchange.hpp"
#include "engine/decision.hpp"
#include "engine/refusal.hpp"
#include "engine/run.hpp"

namespace pipeline::engine {
namespace {

using store::KeyPart;

/// The changes that a step has of its own, besides those that its inputs may bring.
std::vector<std::string> own_changes(const std::vector<KeyPart>& before,
                                     const std::vector<KeyPart>& own) {
  std::vector<KeyPart> old = before;
  std::erase_if(old, [](const KeyPart& part) { return part.name.starts_with("input "); });
  return differences(old, own);
}

/// Steps of a level need none of each other, only some of those before.
std::vector<std::vector<core::StepIndex>> levels_of(const core::Graph& graph) {
  std::vector<std::size_t> level(graph.size());
  std::vector<std::vector<core::StepIndex>> levels;
  const auto order = graph.topological_order();
  for (const auto i : *order) {
    for (const auto needed : graph.needs(i)) level[i] = std::max(level[i], level[needed] + 1);
    if (level[i] == levels.size()) levels.emplace_back();
    levels[level[i]].push_back(i);
  }
  return levels;
}

/// What is known of steps without an earlier success, from the pipeline's newest run.
class NewestRun {
 public:
  NewestRun(store::RunStore& runs, const std::string& pipeline)
      : runs_(runs), pipeline_(pipeline) {}

  std::string why_no_success(const std::string& step) {
    if (!looked_) look();
    const auto found = statuses_.find(step);
    if (found == statuses_.end()) return "never run before";
    if (found->second == StepStatus::failed) return "failed in run " + run_;
    return "did not succeed in run " + run_;
  }

 private:
  void look() {
    looked_ = true;
    const auto newest = runs_.runs(1, pipeline_);
    if (newest.empty()) return;
    run_ = newest.front().id;
    for (auto& step : runs_.steps(run_))
      if (step.attempts > 0) statuses_.emplace(std::move(step.name), step.status);
  }

  store::RunStore& runs_;
  const std::string& pipeline_;
  bool looked_ = false;
  std::string run_;
  std::unordered_map<std::string, StepStatus> statuses_;
};

}  // namespace

async::Task<std::vector<StepPlan>> plan(const PipelineSpec& pipeline,
                                        orchestrators::Orchestrator& orchestrator,
                                        store::RunStore& runs, store::ArtifactStore& artifacts,
                                        store::StatIndex& stats, const CodeProvider& code,
                                        RunOptions options) {
  const auto selected = select_steps(pipeline, options.only_step);
  const core::Graph graph(needs_of(pipeline, selected));
  std::unordered_map<std::string_view, core::StepIndex> position;
  for (core::StepIndex i = 0; i < selected.size(); ++i)
    position.emplace(pipeline.steps[selected[i]].name, i);

  Decisions decisions(pipeline, runs, artifacts, stats, code);
  NewestRun newest(runs, pipeline.name);
  std::vector<StepPlan> plans(selected.size());
  std::vector<std::vector<store::OutputRecord>> outputs(selected.size());
  const OutputsOf outputs_of = [&](const SourceSpec& source) {
    const auto i = position.at(source.step);
    return MadeOutput{&pipeline.steps[selected[i]],
                      &*std::ranges::find(outputs[i], source.output, &store::OutputRecord::name)};
  };

  const auto reuse = [&](core::StepIndex i, store::CacheEntry entry) {
    plans[i].action = StepPlan::Action::reuse;
    plans[i].reused_from = std::move(entry.run);
    outputs[i] = std::move(entry.outputs);
  };
  for (const auto& level : levels_of(graph)) {
    std::vector<CacheLookup> inquiries;
    std::vector<core::StepIndex> inquiring;
    for (const auto i : level) {
      const auto& step = pipeline.steps[selected[i]];
      auto& plan = plans[i];
      plan.step = step.name;
      const auto environment =
          co_await environment_of(orchestrator, step, pipeline.file, options.shared != nullptr);
      plan.environment = environment.description;
      if (!environment.ready) plan.build = environment.reason;
      const auto last = runs.last_key_parts(pipeline.name, step.name);

      std::string waits_for;
      for (const auto& input : step.inputs)
        for (const auto& source : input.sources)
          if (plans[position.at(source.step)].action != StepPlan::Action::reuse)
            waits_for = source.step;

      if (waits_for.empty() && !environment.id.empty()) {
        auto key = decisions.key(step, environment.id, outputs_of);
        plan.key = std::move(key.parts);
        const bool may_reuse = options.use_cache && step.cache;
        auto entry = may_reuse ? decisions.success_of(key.key) : std::nullopt;
        if (entry) {
          reuse(i, std::move(*entry));
          continue;
        }
        if (may_reuse && options.shared) {
          inquiries.push_back({&step, std::move(key.key), std::nullopt});
          inquiring.push_back(i);
        }
        plan.changes = last ? differences(last->second, plan.key)
                            : std::vector<std::string>{newest.why_no_success(step.name)};
      } else {
        plan.key = decisions.own_parts(step, environment.id);
        plan.changes = last ? own_changes(last->second, plan.key)
                            : std::vector<std::string>{newest.why_no_success(step.name)};
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
    if (inquiries.empty()) continue;
    co_await inquire(*options.shared, inquiries);
    for (std::size_t k = 0; k < inquiries.size(); ++k) {
      if (!inquiries[k].answer) continue;
      plans[inquiring[k]].changes.clear();
      reuse(inquiring[k], std::move(*inquiries[k].answer));
    }
  }
  stats.save();
  co_return plans;
}

}  // namespace pipeline::engine

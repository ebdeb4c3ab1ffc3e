#include <algorithm>
#include <unordered_map>

#include "core/graph.hpp"
#include "engine/cache_exchange.hpp"
#include "engine/condition.hpp"
#include "engine/decision.hpp"
#include "engine/refusal.hpp"
#include "engine/run.hpp"

namespace pipeline::engine {
namespace {

using store::KeyPart;

/// Returns the step's own changes, without those that its inputs may cause.
std::vector<std::string> own_changes(const std::vector<KeyPart>& before,
                                     const std::vector<KeyPart>& own) {
  std::vector<KeyPart> old = before;
  std::erase_if(old, [](const KeyPart& part) { return part.name.starts_with("input "); });
  return differences(old, own);
}

/// Groups steps in levels; a step depends only on steps of earlier levels.
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

/// What the pipeline's newest run recorded of steps without an earlier success.
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

/// Plans the steps level by level, so that the sources of a step's inputs are planned before it.
class Planner {
 public:
  Planner(const Services& services, const RunOptions& options, bool with_keys)
      : services_(services),
        options_(options),
        with_keys_(with_keys),
        selected_(select_steps(services.pipeline, options.only_step)),
        forced_(forced_steps(services.pipeline, options.force, options.from)),
        decisions_(services),
        newest_(services.runs, services.pipeline.name),
        has_successes_(services.runs.has_successes()),
        graph_(needs_of(services.pipeline, selected_)),
        plans_(selected_.size()),
        outputs_(selected_.size()),
        may_be_skipped_(selected_.size()) {
    position_.reserve(selected_.size());
    for (core::StepIndex i = 0; i < selected_.size(); ++i) position_.emplace(step_at(i).name, i);
  }

  async::Task<std::vector<StepPlan>> plan() {
    for (const auto& level : levels_of(graph_)) {
      for (const auto i : level) co_await plan_step(i);
      co_await ask_store();
    }
    services_.stats.save();
    co_return std::move(plans_);
  }

 private:
  const StepSpec& step_at(core::StepIndex i) const {
    return services_.pipeline.steps[selected_[i]];
  }

  MadeOutput output_of(const SourceSpec& source) const {
    const auto i = position_.at(source.step);
    return {&step_at(i),
            &*std::ranges::find(outputs_[i], source.output, &store::OutputRecord::name)};
  }

  /// Returns a source of the step's inputs that may run again, so that the inputs are not known;
  /// empty if there is none.
  std::string unknown_source(const StepSpec& step) const {
    std::string unknown;
    for (const auto& input : step.inputs)
      for (const auto& source : input.sources)
        if (plans_[position_.at(source.step)].action != StepPlan::Action::reuse)
          unknown = source.step;
    return unknown;
  }

  void reuse(core::StepIndex i, store::CacheEntry entry) {
    plans_[i].action = StepPlan::Action::reuse;
    plans_[i].reused_from = std::move(entry.run);
    plans_[i].changes.clear();
    outputs_[i] = std::move(entry.outputs);
  }

  async::Task<> plan_step(core::StepIndex i) {
    const auto& step = step_at(i);
    auto& plan = plans_[i];
    plan.step = step.name;
    std::string condition;
    if (may_skip(i)) {
      const auto decision = decide(step, before(i), services_.artifacts);
      if (!decision.error.empty())
        condition = "fails: " + decision.error;
      else if (decision.value == false)
        co_return skip(i, decision.reason);
      else if (!decision.value)
        condition = decision.reason;
      else if (const auto* other = conditional_need(i))
        condition = "unless '" + *other + "' is skipped";
    }
    const auto environment = co_await environment_of(
        services_.orchestrator, step, services_.pipeline, options_.shared != nullptr);
    plan.environment = environment.description;
    if (!environment.ready) plan.build = environment.reason;

    const auto waits_for = unknown_source(step);
    if (waits_for.empty() && !environment.id.empty())
      compare_key(i, environment.id);
    else
      compare_own_parts(i, environment.id, waits_for);
    if (plan.action != StepPlan::Action::reuse) override_by_options(step, plan);
    if (!with_keys_) plan.key = {};
    if (condition.empty()) co_return;
    may_be_skipped_[i] = true;
    plan.action = StepPlan::Action::depends;
    plan.changes.insert(plan.changes.begin(), std::move(condition));
  }

  void skip(core::StepIndex i, std::string reason) {
    plans_[i].action = StepPlan::Action::skip;
    plans_[i].changes = {std::move(reason)};
  }

  /// Returns true if the step has a condition, or needs one that has.
  bool may_skip(core::StepIndex i) const {
    return is_conditional(step_at(i)) || std::ranges::any_of(graph_.needs(i), [&](auto need) {
             return plans_[need].action == StepPlan::Action::skip || may_be_skipped_[need];
           });
  }

  /// Returns a step that may be skipped and takes this one with it; null if there is none.
  const std::string* conditional_need(core::StepIndex i) const {
    if (step_at(i).run_on != RunOn::success) return nullptr;
    for (const auto need : graph_.needs(i))
      if (may_be_skipped_[need]) return &step_at(need).name;
    return nullptr;
  }

  /// Steps that have no result yet may still fail.
  Predecessors before(core::StepIndex i) const {
    const auto outcome_of = [this](core::StepIndex other) {
      const auto action = plans_[other].action;
      return action == StepPlan::Action::skip                               ? Outcome::skipped
             : action == StepPlan::Action::reuse && !may_be_skipped_[other] ? Outcome::made
                                                                            : Outcome::unknown;
    };
    auto all = Outcome::made;
    for (const auto need : graph_.needs(i))
      if (outcome_of(need) == Outcome::unknown) all = Outcome::unknown;
    return {[this, outcome_of](const std::string& step) { return outcome_of(position_.at(step)); },
            all, [this](const SourceSpec& source) { return find_output(source); }};
  }

  const store::OutputRecord* find_output(const SourceSpec& source) const {
    const auto& outputs = outputs_[position_.at(source.step)];
    const auto found = std::ranges::find(outputs, source.output, &store::OutputRecord::name);
    return found == outputs.end() ? nullptr : &*found;
  }

  /// Compares the step's key. All dependencies of the step must be known.
  void compare_key(core::StepIndex i, const std::string& environment_id) {
    const auto& step = step_at(i);
    auto key = decisions_.key(step, environment_id,
                              [this](const SourceSpec& source) { return output_of(source); });
    plans_[i].key = std::move(key.parts);
    const bool may_reuse = options_.use_cache && step.cache && !forced_.contains(step.name);
    if (may_reuse && has_successes_)
      if (auto entry = decisions_.success_of(key.key)) return reuse(i, std::move(*entry));
    if (may_reuse && options_.shared) {
      inquiries_.push_back({&step, std::move(key.key), std::nullopt});
      inquiring_.push_back(i);
    }
    const auto last = last_parts(step);
    plans_[i].changes = last ? differences(last->second, plans_[i].key)
                             : std::vector<std::string>{newest_.why_no_success(step.name)};
  }

  /// Compares the parts of the step's key that are known.
  /// @param waits_for the step whose outputs are not known yet; empty if it is the environment
  void compare_own_parts(core::StepIndex i, const std::string& environment_id,
                         const std::string& waits_for) {
    const auto& step = step_at(i);
    auto& plan = plans_[i];
    plan.key = decisions_.own_parts(step, environment_id);
    const auto last = last_parts(step);
    plan.changes = last ? own_changes(last->second, plan.key)
                        : std::vector<std::string>{newest_.why_no_success(step.name)};
    if (waits_for.empty() || !plan.changes.empty()) return;
    plan.action = StepPlan::Action::depends;
    plan.changes = {"reused if '" + waits_for + "' gives the same as before"};
  }

  void override_by_options(const StepSpec& step, StepPlan& plan) const {
    if (!step.cache) {
      plan.action = StepPlan::Action::run;
      plan.changes = {"cache: false"};
    } else if (forced_.contains(step.name)) {
      plan.action = StepPlan::Action::run;
      plan.changes = {options_.from.empty() ? "--force" : "--force or --from"};
    } else if (!options_.use_cache) {
      plan.action = StepPlan::Action::run;
      plan.changes = {"--no-cache"};
    } else if (plan.changes.empty()) {
      plan.changes = {"its earlier result is gone"};
    }
  }

  auto last_parts(const StepSpec& step) const
      -> decltype(std::declval<store::RunStore&>().last_key_parts({}, {})) {
    if (!has_successes_) return std::nullopt;
    return services_.runs.last_key_parts(services_.pipeline.name, step.name);
  }

  /// Asks the remote cache for the steps that this machine would run.
  async::Task<> ask_store() {
    if (inquiries_.empty()) co_return;
    co_await inquire(*options_.shared, inquiries_);
    for (std::size_t k = 0; k < inquiries_.size(); ++k)
      if (inquiries_[k].answer) reuse(inquiring_[k], std::move(*inquiries_[k].answer));
    inquiries_.clear();
    inquiring_.clear();
  }

  const Services& services_;
  const RunOptions& options_;
  const bool with_keys_;
  const std::vector<std::size_t> selected_;
  std::unordered_map<std::string_view, core::StepIndex> position_;
  const std::set<std::string_view> forced_;
  Decisions decisions_;
  NewestRun newest_;
  const bool has_successes_;
  const core::Graph graph_;
  std::vector<StepPlan> plans_;
  std::vector<std::vector<store::OutputRecord>> outputs_;
  std::vector<bool> may_be_skipped_;
  std::vector<CacheLookup> inquiries_;      ///< Lookups of the current level.
  std::vector<core::StepIndex> inquiring_;  ///< The steps of the lookups.
};

}  // namespace

async::Task<std::vector<StepPlan>> plan(Services services, RunOptions options, bool with_keys) {
  Planner planner(services, options, with_keys);
  co_return co_await planner.plan();
}

}  // namespace pipeline::engine

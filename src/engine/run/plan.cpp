#include <algorithm>
#include <unordered_map>

#include "engine/cache/cache_exchange.hpp"
#include "engine/cache/decision.hpp"
#include "engine/data/download.hpp"
#include "engine/graph/condition.hpp"
#include "engine/graph/run_steps.hpp"
#include "engine/run.hpp"
#include "engine/run/refusal.hpp"
#include "model/graph.hpp"

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

/// A plan fetches nothing that it could report.
class Unheard : public EventSink {
 public:
  void emit(const Event& /*event*/) override {}
};

/// Plans the steps level by level, so that the sources of a step's inputs are planned before it.
class Planner {
 public:
  Planner(const Services& services, const EngineOptions& options, bool with_keys)
      : services_(services),
        options_(options),
        with_keys_(with_keys),
        steps_(services.pipeline, options.only_step),
        scheduler_(steps_.graph()),
        forced_(forced_steps(services.pipeline, options.force, options.from)),
        decisions_(services),
        newest_(services.runs, services.pipeline.name),
        has_successes_(services.runs.has_successes()),
        plans_(steps_.size()),
        may_be_skipped_(steps_.size()) {}

  async::Task<std::vector<StepPlan>> plan() {
    co_await decisions_.data().look_up(services_.pipeline, options_.shared);
    co_await ask_sources();
    for (auto level = next_level(); !level.empty(); level = next_level()) {
      for (const auto i : level) co_await plan_step(i);
      co_await ask_store();
      for (const auto i : level) scheduler_.succeeded(i);
    }
    if (!services_.runs.is_read_only()) services_.stats.save();
    co_return in_order();
  }

 private:
  const StepSpec& step_at(model::StepIndex i) const { return steps_.spec(i); }

  /// Returns the steps whose dependencies are planned.
  std::vector<model::StepIndex> next_level() {
    std::vector<model::StepIndex> level;
    grow();
    while (const auto i = scheduler_.take())
      if (steps_.leads_rounds(*i))
        plan_rounds(*i);
      else if (step_at(*i).repeat)
        follow_rounds(*i);
      else if (steps_[*i].instances)
        end_instances(*i);
      else
        level.push_back(*i);
    return level;
  }

  /// Makes the instances of the steps whose matrix has only values that are known.
  void grow() {
    for (auto group = steps_.take_open_matrix(); !group.empty();
         group = steps_.take_open_matrix()) {
      if (!are_here(*step_at(group.front()).matrix)) continue;
      try {
        const auto needs = steps_.expand(group, services_.artifacts);
        for (std::size_t k = 0; k < group.size(); ++k) scheduler_.grow(group[k], needs[k]);
      } catch (const core::InputError& error) {
        for (const auto i : group)
          plans_[i].changes = {"fails: matrix: " + error.diagnostics().front().message};
      }
      plans_.resize(steps_.size());
      may_be_skipped_.resize(steps_.size());
    }
  }

  /// Returns true if this machine has the outputs with the matrix's values. A plan fetches none.
  bool are_here(const MatrixSpec& matrix) const {
    const auto outputs = steps_.outputs_of();
    return std::ranges::all_of(matrix.axes, [&](const AxisSpec& axis) {
      return !axis.items || services_.artifacts.has(outputs(axis.items->source).output->digest);
    });
  }

  /// A step that is its instances counts as reused if all of them are.
  void end_instances(model::StepIndex i) {
    const auto [first, count] = *steps_[i].instances;
    plans_[i].action = StepPlan::Action::reuse;
    for (auto k = first; k < first + count; ++k) {
      if (plans_[k].action != StepPlan::Action::reuse && plans_[i].action != StepPlan::Action::skip)
        plans_[i].action = plans_[k].action;
      may_be_skipped_[i] = may_be_skipped_[i] || may_be_skipped_[k];
    }
    if (!step_at(i).repeat) scheduler_.succeeded(i);
  }

  /// Plans the next round of steps that are repeated, as far as it is known whether there is one.
  void plan_rounds(model::StepIndex i) {
    auto& plan = plans_[i];
    plan.step = step_at(i).name;
    const auto& repeat = *step_at(i).repeat;
    if (steps_[i].instances) {
      end_instances(i);
      const bool is_known = plan.action == StepPlan::Action::reuse && !may_be_skipped_[i];
      if (!is_known && repeat.until) return leave_rounds_open(i);
      const auto is_last = steps_.is_last_round(i, services_.artifacts);
      if (!is_last.value && is_last.error.empty()) return leave_rounds_open(i);
      if (!is_last.error.empty()) {
        plan.action = StepPlan::Action::run;
        plan.changes = {"fails: " + is_last.error};
        return scheduler_.succeeded(i);
      }
      if (is_last.value == true) {
        steps_.end_rounds(i);
        return scheduler_.succeeded(i);
      }
    } else if (may_skip(i)) {
      const auto decision = decide(step_at(i), before(i), services_.artifacts);
      if (decision.value == false) {
        skip(i, decision.reason);
        return scheduler_.succeeded(i);
      }
      if (!decision.value) {
        plan.changes = {decision.error.empty() ? decision.reason : "fails: " + decision.error};
        return leave_rounds_open(i);
      }
    }
    scheduler_.grow(i, steps_.add_round(i));
    plans_.resize(steps_.size());
    may_be_skipped_.resize(steps_.size());
  }

  /// Plans a step that ends with the first of those that are repeated with it.
  void follow_rounds(model::StepIndex i) {
    const auto leader = steps_.index_of(step_at(i).repeat->of);
    auto& plan = plans_[i];
    plan.step = step_at(i).name;
    plan.action = plans_[leader].action;
    may_be_skipped_[i] = may_be_skipped_[leader];
    if (plan.action == StepPlan::Action::skip) steps_[i].status = StepStatus::skipped;
    plan.changes = {"in the rounds of '" + step_at(leader).name + "'"};
    scheduler_.succeeded(i);
  }

  /// Plans rounds of which it is not known whether they run.
  void leave_rounds_open(model::StepIndex i) {
    auto& plan = plans_[i];
    const auto& repeat = *step_at(i).repeat;
    const auto left = repeat.max - steps_.rounds(i);
    plan.action = left ? StepPlan::Action::unknown : StepPlan::Action::depends;
    if (left)
      plan.changes.insert(plan.changes.begin(),
                          (steps_.rounds(i) ? "further rounds, " : "rounds, ") +
                              std::to_string(left) + " at most" +
                              (repeat.until ? ", until " + repeat.until->text : ""));
    scheduler_.succeeded(i);
  }

  /// Returns the plans in the order of the pipeline, with instances in place of their step.
  std::vector<StepPlan> in_order() {
    if (plans_.size() == steps_.graph().size()) {
      for (model::StepIndex i = 0; i < plans_.size(); ++i) plans_[i].spec = &steps_.declared(i);
      return std::move(plans_);
    }
    std::vector<StepPlan> all;
    all.reserve(plans_.size());
    for (model::StepIndex i = 0; i < steps_.graph().size(); ++i) {
      if (steps_.leads_rounds(i))
        for (const auto& [step, of] : steps_.steps_of_rounds(i)) add_in_order(step, of, all);
      if (!steps_.leads_rounds(i) || !steps_.rounds(i)) {
        add_in_order(i, i, all);
      } else if (!plans_[i].changes.empty()) {  // What is not known of further rounds.
        plans_[i].spec = &steps_.declared(i);
        all.push_back(std::move(plans_[i]));
      }
    }
    return all;
  }

  /// Adds the step's plan, or those of its instances.
  /// @param of the pipeline's own step that it is, or is of
  void add_in_order(model::StepIndex i, model::StepIndex of, std::vector<StepPlan>& all) {
    const auto [first, count] = steps_[i].instances.value_or(std::pair(i, std::size_t{1}));
    for (auto k = first; k < first + count; ++k) {
      plans_[k].spec = &steps_.declared(of);
      all.push_back(std::move(plans_[k]));
    }
  }

  /// Returns a source of the step's inputs that may run again, so that the inputs are not known;
  /// empty if there is none.
  std::string unknown_source(const StepSpec& step) const {
    std::string unknown;
    for (const auto& input : step.inputs)
      for (const auto& source : input.sources)
        if (plans_[steps_.index_of(source.step)].action != StepPlan::Action::reuse)
          unknown = source.step;
    return unknown;
  }

  void reuse(model::StepIndex i, store::CacheEntry entry) {
    plans_[i].action = StepPlan::Action::reuse;
    plans_[i].reused_from = std::move(entry.run);
    plans_[i].changes.clear();
    steps_[i].outputs = std::move(entry.outputs);
    steps_[i].status = StepStatus::cached;
  }

  async::Task<> plan_step(model::StepIndex i) {
    const auto& step = step_at(i);
    auto& plan = plans_[i];
    plan.step = step.name;
    for (const auto& input : step.inputs)
      std::ranges::move(decisions_.data().pins().said_of_source(input),
                        std::back_inserter(plan.notes));
    std::string condition;
    if (step.matrix) {
      if (step.when) condition = "when: " + step.when->text;
    } else if (may_skip(i)) {
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

    if (step.matrix) co_return leave_unknown(plan, std::move(condition));
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

  /// Plans a step whose instances are not known.
  void leave_unknown(StepPlan& plan, std::string condition) const {
    if (!plan.changes.empty()) return;  // Its matrix has wrong values.
    plan.action = StepPlan::Action::unknown;
    std::string items;
    for (const auto& axis : steps_.spec(steps_.index_of(plan.step)).matrix->axes)
      if (axis.items)
        items += (items.empty() ? "" : " and of ") + axis.items->source.step + "." +
                 axis.items->source.output;
    plan.changes = {"a step for each item of " + items};
    if (!condition.empty()) plan.changes.push_back(std::move(condition));
  }

  void skip(model::StepIndex i, std::string reason) {
    plans_[i].action = StepPlan::Action::skip;
    steps_[i].status = StepStatus::skipped;
    plans_[i].changes = {std::move(reason)};
  }

  /// Returns true if the step has a condition, or needs one that has.
  bool may_skip(model::StepIndex i) const {
    return is_conditional(step_at(i)) || std::ranges::any_of(steps_.needs(i), [&](auto need) {
             return plans_[need].action == StepPlan::Action::skip || may_be_skipped_[need];
           });
  }

  /// Returns a step that may be skipped and takes this one with it; null if there is none.
  const std::string* conditional_need(model::StepIndex i) const {
    if (step_at(i).run_on != RunOn::success) return nullptr;
    for (const auto need : steps_.needs(i))
      if (may_be_skipped_[need]) return &step_at(need).name;
    return nullptr;
  }

  /// Steps that have no result yet may still fail.
  Predecessors before(model::StepIndex i) const {
    const auto outcome_of = [this](model::StepIndex other) {
      const auto action = plans_[other].action;
      return action == StepPlan::Action::skip                               ? Outcome::skipped
             : action == StepPlan::Action::reuse && !may_be_skipped_[other] ? Outcome::made
                                                                            : Outcome::unknown;
    };
    auto all = Outcome::made;
    for (const auto need : steps_.needs(i))
      if (outcome_of(need) == Outcome::unknown) all = Outcome::unknown;
    return {
        [this, outcome_of](const std::string& step) { return outcome_of(steps_.index_of(step)); },
        all,
        [this](const SourceSpec& source) {
          // A plan fetches nothing, so what only another machine has made is not known.
          const auto* output = steps_.outputs_of()(source).output;
          return output && services_.artifacts.has(output->digest) ? output : nullptr;
        }};
  }

  /// Compares the step's key. All dependencies of the step must be known.
  void compare_key(model::StepIndex i, const std::string& environment_id) {
    const auto& step = step_at(i);
    auto key = decisions_.key(step, environment_id, steps_.outputs_of());
    plans_[i].key = std::move(key.parts);
    const bool may_reuse = options_.use_cache && step.cache && !is_forced(forced_, step);
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
  void compare_own_parts(model::StepIndex i, const std::string& environment_id,
                         const std::string& waits_for) {
    const auto& step = step_at(i);
    auto& plan = plans_[i];
    plan.key = decisions_.own_parts(step, environment_id);
    const auto last = last_parts(step);
    plan.changes = last ? own_changes(last->second, plan.key)
                        : std::vector<std::string>{newest_.why_no_success(step.name)};
    if (waits_for.empty() || !plan.changes.empty()) return;
    plan.action = StepPlan::Action::depends;
    const bool has_result =
        services_.runs.last_key_parts(services_.pipeline.name, waits_for).has_value();
    plan.changes = {has_result ? "reused if '" + waits_for + "' gives the same as before"
                               : "takes what '" + waits_for + "' makes, which has no result yet: " +
                                     newest_.why_no_success(waits_for)};
  }

  void override_by_options(const StepSpec& step, StepPlan& plan) const {
    if (!step.cache) {
      plan.action = StepPlan::Action::run;
      plan.changes = {"cache: false"};
    } else if (is_forced(forced_, step)) {
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

  /// A step with a condition that is not known is reused if it is not skipped.
  void reuse_from_store(model::StepIndex i, store::CacheEntry entry) {
    auto& plan = plans_[i];
    auto condition = may_be_skipped_[i] ? plan.changes.front() : std::string();
    reuse(i, std::move(entry));
    if (!may_be_skipped_[i]) return;
    plan.action = StepPlan::Action::depends;
    plan.changes = {std::move(condition)};
  }

  /// Asks the servers of the steps' data what has changed there.
  async::Task<> ask_sources() {
    Unheard unheard;
    core::CancelSource stop;
    Downloads downloads(services_, unheard, stop);
    std::vector<const StepSpec*> steps;
    for (model::StepIndex i = 0; i < steps_.size(); ++i) steps.push_back(&step_at(i));
    co_await decisions_.data().pins().ask(steps, downloads, stop);
  }

  /// Asks the remote cache for the steps that this machine would run.
  async::Task<> ask_store() {
    if (inquiries_.empty()) co_return;
    co_await inquire(*options_.shared, inquiries_);
    for (std::size_t k = 0; k < inquiries_.size(); ++k)
      if (inquiries_[k].answer) reuse_from_store(inquiring_[k], std::move(*inquiries_[k].answer));
    inquiries_.clear();
    inquiring_.clear();
  }

  const Services& services_;
  const EngineOptions& options_;
  const bool with_keys_;
  RunSteps steps_;
  model::Scheduler scheduler_;
  const std::set<std::string_view> forced_;
  Decisions decisions_;
  NewestRun newest_;
  const bool has_successes_;
  std::vector<StepPlan> plans_;
  std::vector<bool> may_be_skipped_;
  std::vector<CacheLookup> inquiries_;       ///< Lookups of the current level.
  std::vector<model::StepIndex> inquiring_;  ///< The steps of the lookups.
};

}  // namespace

async::Task<std::vector<StepPlan>> plan(Services services, EngineOptions options, bool with_keys) {
  Planner planner(services, options, with_keys);
  co_return co_await planner.plan();
}

}  // namespace pipeline::engine

#include "engine/plan.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "core/joined.hpp"
#include "core/quantity.hpp"
#include "core/text.hpp"
#include "engine/data/download.hpp"
#include "engine/run/dry_starter.hpp"
#include "engine/run/run_checks.hpp"
#include "orchestrators/nodes.hpp"

namespace pipeline::engine {
namespace {

using store::KeyPart;
using Lines = std::vector<std::string>;

void remove_inputs(std::vector<KeyPart>& parts) {
  std::erase_if(parts, [](const KeyPart& part) { return part.name.starts_with("input "); });
}

void remove_image(std::vector<KeyPart>& parts) {
  std::erase_if(parts, [](const KeyPart& part) { return part.name == "image"; });
}

/// Says why steps have no earlier success.
class LastTries {
 public:
  LastTries(store::RunStore& store, const std::string& pipeline)
      : store_(store), pipeline_(pipeline) {}

  std::string why_no_success(const std::string& step) {
    if (!tries_) tries_ = store_.runs().last_tries(pipeline_);
    const auto found = tries_->find(step);
    if (found == tries_->end()) return "never run before";
    const auto& [run, status] = found->second;
    if (status == StepStatus::failed) return "failed in run " + run;
    if (status == StepStatus::succeeded || status == StepStatus::cached)
      return "its result of run " + run + " was removed";
    return is_running(run) ? "runs in run " + run + ", which is in progress"
                           : "did not succeed in run " + run;
  }

 private:
  bool is_running(const std::string& id) {
    auto known = running_.find(id);
    if (known == running_.end()) {
      const auto run = store_.runs().find(id);
      const bool is_alive = run && run->status == RunStatus::running &&
                            store_.drivers().liveness(*run) == store::Liveness::alive;
      known = running_.emplace(id, is_alive).first;
    }
    return known->second;
  }

  store::RunStore& store_;
  const std::string& pipeline_;
  std::optional<std::unordered_map<std::string, store::Runs::LastTry>> tries_;
  std::unordered_map<std::string, bool> running_;  ///< Keyed by the run's identifier.
};

class NullEventSink : public EventSink {
 public:
  void emit(const Event& /*event*/) override {}
};

/// Records the decisions of the walk as plans.
class Planner final : public DryStarter {
 public:
  Planner(const RunContext& context, Results& results, GraphWalk& walk, bool with_keys)
      : DryStarter(walk),
        services_(context.services),
        options_(context.options),
        with_keys_(with_keys),
        results_(results),
        tries_(services_.store, services_.pipeline.name),
        has_successes_(services_.store.cache().has_successes()),
        plans_(steps_.size()) {
    if (!has_successes_) results_.expect_none();
  }

  bool may_start() const override { return true; }

  void take(model::StepIndex i, Decision decision) override {
    const auto& step = steps_.spec(i);
    auto& plan = plan_of(i);
    for (const auto& input : step.inputs)
      for (auto& note : results_.data().pins().changes_at_source(input))
        plan.notes.push_back(std::move(note));
    if (decision.action == Decision::Action::skip) {
      plan.action = StepPlan::Action::skip;
      plan.changes = Lines{decision.reason};
      return end_step(i, std::move(decision));
    }
    if (!step.wait.empty() && decision.action != Decision::Action::reuse)
      plan.notes.push_back("waits for an answer: " + *step.wait);
    if (decision.action != Decision::Action::reuse)
      for (const auto& [name, service] : step.services)
        plan.notes.push_back("beside it runs the service " + name + " (" + service.image + ")");
    if (step.nodes) plan.notes.push_back("has " + orchestrators::nodes_text(step));
    if (!decision.environment.ready) plan.build = decision.environment.reason;
    if (with_keys_ || !plan.build.empty()) plan.environment = decision.environment.description;
    if (step.matrix) {
      leave_unknown(plan, *step.matrix, std::exchange(decision.condition, {}));
      return end_step(i, std::move(decision));
    }
    compare(step, decision, plan);
    if (options_.remote_cache && decision.key && decision.action == Decision::Action::run &&
        results_.may_be_downloaded(step)) {
      lookups_.push_back({&step, decision.key->key, std::nullopt});
      waiting_.emplace_back(i, std::move(decision));
    } else {
      finish(i, std::move(decision));
    }
  }

  /// Asks the remote cache for the steps that this machine would run.
  async::Task<bool> wait() override {
    if (lookups_.empty()) co_return false;
    co_await look_up_all(*options_.remote_cache, lookups_);
    for (std::size_t k = 0; k < lookups_.size(); ++k) {
      auto& [i, decision] = waiting_[k];
      if (auto& entry = lookups_[k].found) {
        decision.action = Decision::Action::reuse;
        decision.entry = std::move(*entry);
      }
      finish(i, std::move(decision));
    }
    lookups_.clear();
    waiting_.clear();
    co_return true;
  }

  void fail(model::StepIndex /*i*/, const core::EnvironmentError& /*error*/) override { throw; }

  void fail(model::StepIndex i, Failure failure) override {
    auto& plan = plan_of(i);
    const auto reason = "fails: " + failure.message;
    plan.changes = Lines{reason};
    if (!steps_.spec(i).repeat)
      return;  // A step whose matrix has wrong values gets its turn later.
    if (!steps_.rounds(i)) return leave_open(i, reason);
    plan.action = StepPlan::Action::run;
    scheduler_.mark_succeeded(i);
  }

  void leave_open(model::StepIndex i, const std::string& reason) override {
    if (!steps_.spec(i).repeat) return;  // A step with a matrix gets its turn later.
    auto& plan = plan_of(i);
    const auto& repeat = *steps_.spec(i).repeat;
    const auto rounds = steps_.rounds(i);
    const auto left = repeat.max - rounds;
    plan.action = left ? StepPlan::Action::unknown : StepPlan::Action::depends;
    if (left)
      plan.changes = Lines{(rounds ? "further rounds, " : "rounds, ") + std::to_string(left) +
                           " at most" + (repeat.until ? ", until " + repeat.until->text : "")};
    if (!rounds) plan.changes->push_back(reason);
    scheduler_.mark_succeeded(i);
  }

  void expanded(const std::vector<const StepSpec*>& /*steps*/,
                std::pair<model::StepIndex, std::size_t> /*instances*/,
                std::optional<unsigned> /*round*/) override {
    plans_.resize(steps_.size());
  }

  void end_instances(model::StepIndex i) override {
    const auto& step = steps_.spec(i);
    if (step.repeat && !steps_.is_loop_head(i)) {
      auto& plan = plan_of(i);
      plan.action = plans_[steps_.index_of(step.repeat->of)].action;
      plan.changes = Lines{"in the rounds of '" + step.repeat->of + "'"};
    }
    DryStarter::end_instances(i);
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
      if (steps_.is_loop_head(i))
        for (const auto& [step, base] : steps_.steps_of_rounds(i)) add_in_order(step, base, all);
      if (!steps_.is_loop_head(i) || !steps_.rounds(i)) {
        add_in_order(i, i, all);
      } else if (!(*plans_[i].changes).empty()) {  // The text about further rounds.
        plans_[i].spec = &steps_.declared(i);
        all.push_back(std::move(plans_[i]));
      }
    }
    return all;
  }

 private:
  /// Adds the step's plan, or those of its instances.
  /// @param base the pipeline's own step
  void add_in_order(model::StepIndex i, model::StepIndex base, std::vector<StepPlan>& all) {
    const auto [first, count] = steps_[i].instances.value_or(std::pair(i, model::StepIndex{1}));
    for (auto k = first; k < first + count; ++k) {
      plans_[k].spec = &steps_.declared(base);
      all.push_back(std::move(plans_[k]));
    }
  }

  StepPlan& plan_of(model::StepIndex i) {
    plans_[i].step = steps_.spec(i).name;
    return plans_[i];
  }

  /// Compares the step's key, as far as it is known, with that of its last success.
  void compare(const StepSpec& step, Decision& decision, StepPlan& plan) {
    const auto& environment = decision.environment;
    if (decision.key)
      plan.key = std::move(decision.key->parts);
    else
      plan.key = own_parts(step, decision);
    if (decision.action == Decision::Action::reuse) return;
    auto now = plan.key.vector();
    if (environment.id.empty()) remove_image(now);
    auto nearest = has_successes_ ? services_.store.cache().nearest_key_parts(
                                        services_.pipeline.name, step.name, now)
                                  : std::nullopt;
    if (!nearest) {
      Lines why{tries_.why_no_success(step.name)};
      if (*no_success_ != why) no_success_ = std::move(why);
      plan.changes = no_success_;
      return;
    }
    auto& [run, before] = *nearest;
    if (decision.action == Decision::Action::unknown) remove_inputs(before);
    const auto requirements = environment.id.empty()
                                  ? changed_requirements(before, environment.requirements)
                                  : std::string();
    if (environment.id.empty()) remove_image(before);
    auto changes = differences(before, now);
    describe_image_change(environment, changes);
    if (!changes.empty()) {
      plan.changes = std::move(changes);
      return;
    }
    if (decision.action == Decision::Action::unknown) {
      plan.action = StepPlan::Action::depends;
      plan.changes = Lines{describe_wait(decision)};
    } else if (!requirements.empty()) {
      plan.changes = Lines{"image changed: " + requirements};
    } else if (environment.id.empty()) {
      plan.action = StepPlan::Action::depends;
      plan.changes = Lines{"reused if its environment is that of run " + run +
                           " again: " + environment.reason};
    }
  }

  /// Returns how the requirements differ from those of the image of an earlier success. Empty if
  /// they do not differ, or if the earlier ones are not known.
  std::string changed_requirements(const std::vector<KeyPart>& before,
                                   const std::vector<std::string>& now) {
    const auto image = std::ranges::find(before, "image", &KeyPart::name);
    if (image == before.end() || now.empty()) return {};
    const auto known = services_.store.key_values().find(store::requirements_kind, image->value);
    if (!known) return {};
    std::vector<std::string> earlier, changes;
    for (const auto line : core::lines_of(*known)) earlier.emplace_back(line);
    for (const auto& line : now)
      if (std::ranges::find(earlier, line) == earlier.end()) changes.push_back("added " + line);
    for (const auto& line : earlier)
      if (std::ranges::find(now, line) == now.end()) changes.push_back("removed " + line);
    return changes.empty() ? "" : "requirements changed (" + core::joined(changes, ", ") + ")";
  }

  /// Returns the parts of a key of which some are not known yet: those of the step itself and, if
  /// only the environment is not known, those of its inputs.
  std::vector<KeyPart> own_parts(const StepSpec& step, const Decision& decision) {
    auto& keys = results_.keys();
    if (decision.action == Decision::Action::unknown)
      return keys.own_parts(step, decision.environment);
    return keys.key(step, decision.environment, steps_.outputs_of()).parts;
  }

  /// If the image has to be built, replaces the line about it by its differences from the most
  /// similar image that exists.
  static void describe_image_change(const orchestrators::Environment& environment,
                                    std::vector<std::string>& changes) {
    if (environment.ready || environment.reason.empty()) return;
    for (auto& change : changes)
      if (change == "image changed" || change.starts_with("image: "))
        change = "image changed: " + environment.reason;
  }

  /// Describes the steps whose outputs a waiting step needs.
  std::string describe_wait(const Decision& decision) {
    const auto& source = decision.waits_for;
    const auto& spec = steps_.spec(steps_.index_of(source));
    if (spec.matrix || spec.repeat)
      return "takes what the steps of '" + source + "' make, which are not known yet";
    if (!services_.store.cache().last_key_parts(services_.pipeline.name, source))
      return "takes what '" + source +
             "' makes, which has no result yet: " + tries_.why_no_success(source);
    if (decision.also_waits_for == 0) return "reused if '" + source + "' gives the same as before";
    return "reused if '" + source + "' and " +
           core::counted(decision.also_waits_for, "other step") + " give the same as before";
  }

  void finish(model::StepIndex i, Decision decision) {
    auto& plan = plans_[i];
    if (decision.action == Decision::Action::reuse) {
      plan.action = StepPlan::Action::reuse;
      plan.reused_from = decision.entry.run;
      plan.changes = {};
    } else {
      override_by_options(steps_.spec(i), decision, plan);
    }
    if (!with_keys_) plan.key.clear();
    auto condition = decision.error.empty() ? decision.condition : "fails: " + decision.error;
    if (!condition.empty()) {
      plan.action = StepPlan::Action::depends;
      plan.changes->insert(plan.changes->begin(), std::move(condition));
    }
    end_step(i, std::move(decision));
    restore_inputs(i, plans_[i].action);
  }

  /// Plans the steps that make the temporary inputs of a step again, if these were removed.
  void restore_inputs(model::StepIndex i, StepPlan::Action action) {
    if (action != StepPlan::Action::run && action != StepPlan::Action::depends) return;
    const bool is_certain = action == StepPlan::Action::run;
    for (const auto& input : steps_.spec(i).inputs)
      for (const auto& source : input.sources) {
        const auto* output = steps_.outputs_of()(source).output;
        if (!output || !output->temp || services_.artifacts.is_known(output->digest)) continue;
        const auto maker = steps_.index_of(source.step);
        auto& plan = plans_[maker];
        if (plan.action != StepPlan::Action::reuse && !(is_certain && is_restored(plan))) continue;
        const bool may_be_remote = options_.remote_cache && steps_.spec(maker).cache;
        plan.action = may_be_remote ? StepPlan::Action::depends : action;
        plan.changes = Lines{
            std::string(needed_again) + source.output + "' was removed, and '" +
            steps_.spec(i).name + (is_certain ? "' needs it" : "' needs it if it runs") +
            (may_be_remote ? ": runs unless " + options_.remote_cache->name() + " has it" : "")};
        restore_inputs(maker, plan.action);
      }
  }

  static constexpr std::string_view needed_again = "its temporary output '";
  /// Returns true if restore_inputs() has planned that the step may run again.
  static bool is_restored(const StepPlan& plan) {
    return plan.action == StepPlan::Action::depends && !plan.changes->empty() &&
           plan.changes->front().starts_with(needed_again);
  }

  /// Plans a step whose instances are not known.
  static void leave_unknown(StepPlan& plan, const MatrixSpec& matrix, std::string condition) {
    if (!(*plan.changes).empty()) return;  // The matrix has wrong values.
    plan.action = StepPlan::Action::unknown;
    std::string items;
    for (const auto& axis : matrix.axes)
      if (axis.items)
        items += (items.empty() ? "" : " and of ") + axis.items->source.step + "." +
                 axis.items->source.output;
    plan.changes = Lines{"a step for each item of " + items};
    if (!condition.empty()) plan.changes->push_back(std::move(condition));
  }

  /// Plans that the step runs if options or its own settings forbid reuse, and gives the reason.
  void override_by_options(const StepSpec& step, const Decision& decision, StepPlan& plan) {
    std::string reason;
    if (!step.cache)
      reason = why_never_reused(step);
    else if (results_.is_forced(step))
      reason = options_.from.empty() ? "--force" : "--force or --from";
    else if (!options_.use_cache)
      reason = "--no-cache";
    if (!reason.empty())
      plan.action = StepPlan::Action::run;
    else if ((*plan.changes).empty())
      reason = why_not_reused(step, decision);
    if (!reason.empty()) plan.changes = Lines{std::move(reason)};
  }

  static std::string why_never_reused(const StepSpec& step) {
    if (!step.wait.empty()) return "a step that waits for an answer is not reused";
    if (step.run_on == RunOn::failure) return "a step with `run_on: failure` is not reused";
    if (step.run_on == RunOn::always) return "a step with `run_on: always` is not reused";
    return "cache: false";
  }

  std::string why_not_reused(const StepSpec& step, const Decision& decision) {
    if (step.cache_max_age && decision.key)
      if (const auto old = results_.keys().success_of(step, decision.key->key))
        return "its earlier result is older than `max_age: " +
               core::format_duration(*step.cache_max_age) + "`";
    return "its earlier result is gone";
  }

  const Services& services_;
  const EngineOptions& options_;
  const bool with_keys_;
  Results& results_;
  LastTries tries_;
  const bool has_successes_;
  CopyOnWrite<Lines> no_success_;  ///< Why the last step without a success has none.
  std::vector<StepPlan> plans_;
  std::vector<CacheLookup> lookups_;
  /// The steps of lookups_, in order.
  std::vector<std::pair<model::StepIndex, Decision>> waiting_;
};

/// Asks the servers of the steps' data whether it has changed.
async::Task<> find_changes_at_sources(const RunContext& context, Results& results,
                                      const RunSteps& steps) {
  Downloads downloads(context.services, context.events, context.user_stop);
  const auto all = steps.with_status(StepStatus::pending);
  co_await results.data().pins().find_changes(all, downloads, context.user_stop);
}

/// Adds how long steps that would run would wait on a cluster.
async::Task<> add_waits(orchestrators::Routes& routes, std::vector<StepPlan>& plans) {
  std::vector<StepPlan*> running;
  std::vector<const StepSpec*> steps;
  for (auto& plan : plans) {
    if (plan.action != StepPlan::Action::run || !plan.spec) continue;
    running.push_back(&plan);
    steps.push_back(plan.spec);
  }
  auto waits = co_await routes.expected_waits(steps);
  for (std::size_t i = 0; i < waits.size(); ++i)
    if (!waits[i].empty()) running[i]->notes.push_back(std::move(waits[i]));
}

}  // namespace

async::Task<std::vector<StepPlan>> plan(Services services, EngineOptions options, bool with_keys) {
  NullEventSink events;
  core::CancelSource stop;
  asio::thread_pool pool(1);
  const auto executor = co_await asio::this_coro::executor;
  async::TaskGroup tasks(executor);
  const RunContext context{services, options, events, stop, pool, executor, tasks};
  Results results(context);
  GraphWalk walk(context, results);
  check_steps(context, walk.steps().with_status(StepStatus::pending));
  co_await results.data().look_up(services.pipeline, options.remote_cache);
  co_await find_changes_at_sources(context, results, walk.steps());
  Planner planner(context, results, walk, with_keys);
  co_await walk.run(planner);
  if (!services.store.is_read_only()) services.stats.save();
  auto plans = planner.in_order();
  co_await add_waits(services.routes, plans);
  co_return plans;
}

}  // namespace pipeline::engine

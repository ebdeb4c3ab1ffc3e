#include "spec/repeat.hpp"

#include <algorithm>
#include <unordered_map>

#include "core/expression.hpp"
#include "model/graph.hpp"
#include "model/step_needs.hpp"
#include "settings/decode.hpp"
#include "spec/include.hpp"
#include "spec/keys.hpp"

namespace pipeline::spec {
namespace {

using core::Value;
using Steps = std::unordered_map<std::string_view, const ReadStep*>;

/// Maximum length of a repeated step's name; its rounds have longer names.
constexpr std::size_t max_repeated_name = 80;
constexpr const char* example = "as in `{until: \"${fit.metrics.loss} < 0.1\", max: 20}`";

Steps by_name(const std::vector<ReadStep>& steps) {
  Steps found;
  found.reserve(steps.size());
  for (const ReadStep& step : steps) found.emplace(step.spec.name, &step);
  return found;
}

/// Returns true if the step declares the repetition; false if it names a step that does.
bool has_rounds(const ReadStep& step) {
  const Value* repeat = step.body->find("repeat");
  return repeat && repeat->kind == Value::Kind::map;
}

/// Reads `{until: EXPRESSION, max: ROUNDS}`.
void read_rounds(ReadStep& step, settings::Diagnostics& diagnostics) {
  static const std::vector<std::string> keys{"until", "max"};
  const Value& map = *step.body->find("repeat");
  settings::report_unknown_keys(map, keys, "a repeat", diagnostics);
  auto& repeat = step.spec.repeat.emplace();
  repeat.of = step.spec.name;
  const Value* max = map.find("max");
  if (!max) {
    if (!has_misspelt(map, "max"))
      settings::report(diagnostics, "missing-key", "this repeat has no 'max'", map.span, {example});
    return;
  }
  repeat.max = settings::read_count("max", *max, diagnostics, {1, max_rounds}).value_or(1);
}

/// Reads the name of the step in whose rounds this one runs.
void follow(ReadStep& step, const Steps& steps, settings::Diagnostics& diagnostics) {
  const Value& written = *step.body->find("repeat");
  if (written.kind != Value::Kind::scalar) {
    settings::report_type(diagnostics, "repeat",
                          "`{until: EXPRESSION, max: ROUNDS}`, or the name of a step that has that",
                          written);
    return;
  }
  const auto name = step.scope->step_called(written.scalar);
  const auto found = steps.find(name);
  if (found != steps.end() && has_rounds(*found->second)) {
    step.spec.repeat = RepeatSpec{.of = name};
    return;
  }
  std::vector<std::string> names;
  for (const auto& [other, each] : steps)
    if (has_rounds(*each)) names.emplace_back(other);
  settings::report(diagnostics, "bad-repeat",
                   "step '" + written.scalar + "' has no `repeat` with `until` and `max`",
                   written.span, {}, core::did_you_mean(written.scalar, names));
}

/// Returns true for an expression that refers to nothing. An invalid expression, which has been
/// reported, is not constant.
bool is_constant(const std::string& expression) {
  try {
    return core::Expression::parse(expression).variables().empty();
  } catch (const core::ExpressionError&) {
    return false;
  }
}

/// Checks the keys and references of one repeated step.
class RepeatCheck {
 public:
  RepeatCheck(const ReadStep& step, const Steps& steps, settings::Diagnostics& diagnostics)
      : step_(step), steps_(steps), diagnostics_(diagnostics) {}

  void run() {
    const auto& name = step_.spec.name;
    const bool leads = step_.spec.repeat->of == name;
    if (name.size() > max_repeated_name)
      report("bad-name",
             "the name of a repeated step has at most " + std::to_string(max_repeated_name) +
                 " characters",
             step_.key->span);
    if (leads && step_.body->find("matrix"))
      report("contradiction", "step '" + name + "' has both a 'repeat' and a 'matrix'",
             step_.body->find("matrix")->span,
             "the step that leads the rounds has no matrix: let another one lead them, such as one "
             "that gathers '" +
                 name + "[*]', and write `repeat: THAT_STEP` beside the matrix");
    if (const Value* when = step_.body->find("when"); when && !leads)
      report("contradiction",
             "step '" + name + "' runs in the rounds of '" + step_.spec.repeat->of +
                 "', so it has no 'when' of its own",
             when->span, "the `when` of '" + step_.spec.repeat->of + "' decides for all of them");
    if (const Value* run_on = step_.body->find("run_on"))
      report("contradiction", "step '" + name + "' has both a 'repeat' and a 'run_on'",
             run_on->span);
    if (const Value* publish = step_.body->find("publish"))
      report("contradiction",
             "step '" + name + "' is repeated, so an output of each round would get one name",
             publish->span, "publish from a step that takes its output");
    if (const Value* own = step_.body->find("parameters"))
      if (const Value* round = own->find(round_parameter))
        report("contradiction",
               "'round' of step '" + name + "' is the number of the round, and a parameter",
               round->span);
    check_first_and_then();
    if (leads && !depends_on_round())
      report("bad-repeat",
             "`until` names no output of the steps that are repeated, so it is the same after each "
             "round",
             step_.body->find("repeat")->find("until")->span,
             "as in `${" + name + ".OUTPUT.MEMBER} < 0.1`");
  }

 private:
  void report(const char* code, const std::string& message, core::Span span,
              const std::string& suggestion = {}) {
    settings::report(diagnostics_, code, message, span, {}, suggestion);
  }

  bool is_together(const std::string& other) const {
    const auto found = steps_.find(other);
    return found != steps_.end() && run_together(step_.spec, found->second->spec);
  }

  bool depends_on_round() const {
    const auto& until = step_.spec.repeat->until;
    if (!until) return true;
    if (until->outputs.empty() && until->parameters.empty()) return !is_constant(until->text);
    return until->parameters.contains(std::string("params.") + round_parameter) ||
           std::ranges::any_of(until->outputs, [&](const auto& value) {
             return is_together(value.second.source.step);
           });
  }

  void check_first_and_then() {
    for (const auto& then : step_.then_sources) {
      const auto& input = step_.spec.inputs[then.input];
      if (!is_together(input.then->step))
        report("bad-repeat",
               "`then` takes an output of the round before, and '" + input.then->step +
                   "' is not in these rounds",
               then.span);
      if (is_together(input.sources.at(0).step))
        report("bad-repeat",
               "`first` is for the first round, before which '" + input.sources[0].step +
                   "' has made nothing",
               step_.inputs[then.input].span);
    }
  }

  const ReadStep& step_;
  const Steps& steps_;
  settings::Diagnostics& diagnostics_;
};

/// Reports inputs from instances that differ in each round.
void check_inputs(const ReadStep& step, const Steps& steps, settings::Diagnostics& diagnostics) {
  for (const auto& [selector, span] : step.inputs) {
    const auto found = steps.find(selector.step);
    if (found == steps.end()) continue;
    const ReadStep& target = *found->second;
    if (!target.open || !target.spec.repeat || run_together(step.spec, target.spec)) continue;
    settings::report(diagnostics, "bad-selector",
                     "step '" + target.spec.name + "' has other instances in each round", span, {},
                     "take the output of a step that gathers them in each round");
  }
}

/// Reports a matrix whose instances differ in each round, or exist in no round.
void check_matrix(const ReadStep& step, const Steps& steps, settings::Diagnostics& diagnostics) {
  if (!step.open) return;
  const auto found = steps.find(step.open->spec.of);
  if (found == steps.end() || found->second == &step) return;
  const StepSpec& other = found->second->spec;
  if ((!step.spec.repeat && !other.repeat) || run_together(step.spec, other)) return;
  const auto& repeated = other.repeat ? other : step.spec;
  settings::report(diagnostics, "bad-matrix",
                   "step '" + step.spec.name + "' has the matrix of '" + other.name + "', and '" +
                       repeated.name + "' is repeated in rounds that the other one is not in",
                   step.body->find("matrix")->span, {},
                   "give both `repeat: " + repeated.repeat->of + "`");
}

/// Reports steps between the steps of a round that are not repeated themselves.
void check_order(const std::vector<ReadStep>& steps, settings::Diagnostics& diagnostics) {
  std::unordered_map<std::string_view, model::StepIndex>
      place;  // The place of a group is that of its leader.
  for (model::StepIndex i = 0; i < steps.size(); ++i) place.emplace(steps[i].spec.name, i);
  const auto group_of = [&](const StepSpec& step) {
    return place.at(step.repeat ? step.repeat->of : step.name);
  };
  std::vector<std::vector<model::StepIndex>> needs(steps.size());
  for (const ReadStep& step : steps) {
    const auto own = group_of(step.spec);
    const auto add = [&](const std::string& name) {
      const auto found = place.find(name);
      if (found == place.end()) return;
      const auto other = group_of(steps[found->second].spec);
      if (other != own) needs[own].push_back(other);
    };
    model::for_each_need(step.spec, add);
    if (!step.open) continue;
    for (const auto& axis : step.open->spec.axes)
      if (axis.items) add(axis.items->source.step);
  }
  const auto cycle = model::Graph(needs).find_cycle();
  if (cycle.empty()) return;
  const auto leader =
      std::ranges::find_if(cycle, [&](auto i) { return steps[i].spec.repeat.has_value(); });
  const auto between =
      std::ranges::find_if(cycle, [&](auto i) { return !steps[i].spec.repeat.has_value(); });
  if (leader == cycle.end()) return;  // A circle of other steps has been reported.
  const auto& other = steps[between == cycle.end() ? cycle.back() : *between];
  settings::report(diagnostics, "bad-repeat",
                   "step '" + other.spec.name + "' stands between steps of the rounds of '" +
                       steps[*leader].spec.name + "', and is not in these rounds",
                   other.key->span, {}, "give it `repeat: " + steps[*leader].spec.name + "`");
}

}  // namespace

bool run_together(const StepSpec& a, const StepSpec& b) {
  return a.repeat && b.repeat && a.repeat->of == b.repeat->of;
}

void read_repeats(std::vector<ReadStep>& steps, settings::Diagnostics& diagnostics) {
  if (std::ranges::none_of(steps, [](const ReadStep& step) { return step.body->find("repeat"); }))
    return;
  const auto names = by_name(steps);
  for (ReadStep& step : steps)
    if (has_rounds(step))
      read_rounds(step, diagnostics);
    else if (step.body->find("repeat"))
      follow(step, names, diagnostics);
}

void check_repeats(const std::vector<ReadStep>& steps, settings::Diagnostics& diagnostics) {
  const auto concerned = [](const ReadStep& step) {
    return step.body->find("repeat") || !step.then_sources.empty();
  };
  if (std::ranges::none_of(steps, concerned)) return;
  const auto names = by_name(steps);
  bool is_any = false;
  const auto before = diagnostics.size();
  for (const ReadStep& step : steps) {
    is_any |= step.spec.repeat.has_value();
    check_inputs(step, names, diagnostics);
    check_matrix(step, names, diagnostics);
    if (step.spec.repeat)
      RepeatCheck(step, names, diagnostics).run();
    else if (!step.then_sources.empty() && !step.body->find("repeat"))
      settings::report(diagnostics, "bad-repeat",
                       "`first` and `then` are for the inputs of a step with a `repeat`",
                       step.then_sources.front().span);
  }
  if (is_any && diagnostics.size() == before) check_order(steps, diagnostics);
}

}  // namespace pipeline::spec

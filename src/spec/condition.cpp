#include "spec/condition.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/expression.hpp"
#include "model/step_needs.hpp"
#include "settings/decode.hpp"
#include "spec/include.hpp"
#include "spec/keys.hpp"
#include "spec/parameter_value.hpp"
#include "spec/scalar_places.hpp"

namespace pipeline::spec {
namespace {

constexpr const char* values_of_conditions =
    "a condition knows ${params.X} and, of JSON outputs, ${STEP.OUTPUT} and "
    "${STEP.OUTPUT.MEMBER}";

/// The parts of `STEP[SELECTOR].OUTPUT.MEMBER...`.
struct OutputName {
  model::Selector selector;
  OutputValue value;
};

/// Returns nothing for a text of another form.
std::optional<OutputName> output_named(std::string_view name) {
  const auto bracket = name.find('[');
  const auto end = bracket == std::string_view::npos ? name.find('.') : name.find("].", bracket);
  if (end == std::string_view::npos) return std::nullopt;
  const auto step_end = bracket == std::string_view::npos ? end : end + 1;
  auto selector = model::parse_selector(name.substr(0, step_end));
  if (!selector) return std::nullopt;
  OutputName found{std::move(*selector), {}};
  found.value.source.step = found.selector.step;
  auto rest = name.substr(step_end + 1);
  for (bool is_output = true;; is_output = false) {
    const auto dot = rest.find('.');
    const std::string part(rest.substr(0, dot));
    if (part.empty()) return std::nullopt;
    if (is_output)
      found.value.source.output = part;
    else
      found.value.path.push_back(part);
    if (dot == std::string_view::npos) return found;
    rest.remove_prefix(dot + 1);
  }
}

/// Returns advice for the words that GitLab has after `when:`; empty for other texts.
std::string gitlab_advice(std::string_view text) {
  if (text == "always") return "write `run_on: always`";
  if (text == "on_failure" || text == "failure") return "write `run_on: failure`";
  if (text == "on_success" || text == "success") return "leave it out";
  if (text == "never") return "write `when: false`";
  return {};
}

class ConditionReader {
 public:
  ConditionReader(const ReadStep& step, ScalarPlaces& places, settings::Diagnostics& diagnostics)
      : step_(step), places_(places), diagnostics_(diagnostics) {}

  /// @param key `when` or `until`
  /// @param outputs receives the outputs that the condition depends on
  void read(const char* key, const core::Value& value, Rare<Condition>& condition_read,
            RareList<ReadStep::ConditionValue>& outputs) {
    if (value.kind != core::Value::Kind::scalar)
      return settings::report_type(
          diagnostics_, key, "an expression, such as `${evaluate.metrics.accuracy} > 0.9`", value);
    auto& condition = condition_read.emplace();
    condition.text = value.scalar;
    try {
      const auto expression = core::Expression::parse(condition.text);
      for (const auto& variable : expression.variables()) add(variable, value, condition, outputs);
      expression.check([&](const core::Expression::Variable& variable) -> const nlohmann::json* {
        const auto found = condition.parameters.find(variable.name);
        // An axis has its value only in an instance.
        return found == condition.parameters.end() || found->second->is_null() ? nullptr
                                                                               : &*found->second;
      });
    } catch (const core::ExpressionError& error) {
      const auto advice = gitlab_advice(condition.text);
      settings::report(diagnostics_, "bad-condition",
                       "in `" + std::string(key) + "`: " + error.message,
                       places_.find(value, error.offset, error.length), {},
                       advice.empty() ? error.suggestion : advice);
    }
  }

 private:
  void add(const core::Expression::Variable& variable, const core::Value& written,
           Condition& condition, RareList<ReadStep::ConditionValue>& outputs) {
    const auto span = places_.find(written, variable.offset, variable.length);
    constexpr std::string_view prefix = "params.";
    if (variable.name.starts_with(prefix)) {
      const auto path = variable.name.substr(prefix.size());
      const auto name = path.substr(0, path.find('.'));
      if (const auto known = step_.spec.parameters.find(name);
          known != step_.spec.parameters.end()) {
        if (name == path) {
          condition.parameters.emplace(variable.name, known->second);
          return;
        }
        const auto member = member_of(name, *known->second, path.substr(name.size() + 1));
        if (member.value)
          condition.parameters.emplace(variable.name, Json(*member.value));
        else
          settings::report(diagnostics_, "unknown-reference", member.problem, span, {},
                           member.suggestion);
        return;
      }
      std::vector<std::string> names;
      for (const auto& [each, value] : step_.spec.parameters) names.push_back(each);
      return settings::report(diagnostics_, "unknown-reference",
                              "the step has no parameter '" + name + "'", span, {},
                              core::did_you_mean(name, names));
    }
    auto output = output_named(variable.name);
    if (!output)
      return settings::report(diagnostics_, "unknown-reference",
                              "unknown name '" + variable.name + "' in ${...}", span,
                              {values_of_conditions});
    if (!condition.outputs.emplace(variable.name, std::move(output->value)).second) return;
    output->selector.step = step_.scope->step_called(output->selector.step);
    condition.outputs.at(variable.name).source.step = output->selector.step;
    outputs.push_back({variable.name, std::move(output->selector), span});
  }

  const ReadStep& step_;
  ScalarPlaces& places_;
  settings::Diagnostics& diagnostics_;
};

}  // namespace

RunOn read_run_on(const core::Value& value, settings::Diagnostics& diagnostics) {
  const auto word = read_word("run_on", value, {"success", "failure", "always"}, diagnostics);
  if (word == "failure") return RunOn::failure;
  return word == "always" ? RunOn::always : RunOn::success;
}

void read_conditions(std::vector<ReadStep>& steps, const std::vector<std::string_view>& sources,
                     settings::Diagnostics& diagnostics) {
  ScalarPlaces places(sources);
  for (ReadStep& step : steps) {
    ConditionReader reader(step, places, diagnostics);
    if (const auto* when = step.body->find("when"))
      reader.read("when", *when, step.spec.when, step.condition_values);
    const auto* repeat = step.body->find("repeat");
    const auto* until = repeat ? repeat->find("until") : nullptr;
    if (until && step.spec.repeat)
      reader.read("until", *until, step.spec.repeat->until, step.until_values);
  }
}

void order_final_steps(std::vector<StepSpec>& steps) {
  std::vector<std::size_t> open;  // Steps whose dependent steps are still to be marked.
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (steps[i].run_on != RunOn::success) open.push_back(i);
  const auto finals = open;
  if (finals.empty()) return;
  std::unordered_map<std::string_view, std::vector<std::size_t>> dependents;
  for (std::size_t i = 0; i < steps.size(); ++i)
    model::for_each_need(steps[i], [&](const std::string& name) { dependents[name].push_back(i); });
  std::vector<bool> is_marked(steps.size());  // Final steps, and steps that depend on one.
  for (const auto i : finals) is_marked[i] = true;
  while (!open.empty()) {
    const auto& name = steps[open.back()].name;
    open.pop_back();
    if (const auto found = dependents.find(name); found != dependents.end())
      for (const auto dependent : found->second)
        if (!is_marked[dependent]) {
          is_marked[dependent] = true;
          open.push_back(dependent);
        }
  }
  std::vector<std::string> others;
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (!is_marked[i]) others.push_back(steps[i].name);
  for (const auto i : finals)
    if (steps[i].after.empty()) steps[i].after = others;
}

}  // namespace pipeline::spec

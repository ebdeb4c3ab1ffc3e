#include "engine/graph/condition.hpp"

#include <map>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/expression.hpp"
#include "engine/graph/json_output.hpp"

namespace pipeline::engine {
namespace {

/// Bytes of an output that a condition reads.
constexpr std::uint64_t max_condition_input = 1 << 20;

/// Returns the error if fewer outputs exist than an input's `at_least`.
std::string too_few(const StepSpec& step, const Predecessors& before) {
  for (const auto& input : step.inputs) {
    if (!input.at_least) continue;
    std::size_t left = 0;
    bool is_known = true;
    for (const auto& source : input.sources) {
      const auto outcome = before.outcome_of(source.step);
      is_known &= outcome != Outcome::unknown;
      left += outcome == Outcome::made || outcome == Outcome::unknown;
    }
    // In a plan, a source may stand for instances that are not known yet.
    if (!is_known && input.sources.size() < *input.at_least) continue;
    if (left < *input.at_least)
      return "only " + std::to_string(left) + " of the " + std::to_string(input.sources.size()) +
             " outputs of the input '" + input.name + "' are there, and `at_least` is " +
             std::to_string(*input.at_least);
  }
  return {};
}

/// Reads the values of one condition.
class Values {
 public:
  Values(const Condition& condition, const FindOutput& find_output, store::ArtifactStore& artifacts)
      : condition_(condition), find_output_(find_output), artifacts_(artifacts) {}

  const nlohmann::json* find(const core::Expression::Variable& variable) {
    if (const auto known = read_.find(variable.name); known != read_.end()) return &known->second;
    const auto parameter = condition_.parameters.find(variable.name);
    if (parameter != condition_.parameters.end())
      return &read_.emplace(variable.name, *parameter->second).first->second;
    const auto& value = condition_.outputs.at(variable.name);
    const auto* output = find_output_(value.source);
    if (!output) return nullptr;
    auto found = read_member(*output, value, artifacts_, max_condition_input);
    return &read_.emplace(variable.name, std::move(found)).first->second;
  }

  /// Returns the values that were read: `evaluate.metrics.accuracy is 0.85, params.threshold is
  /// 0.9`.
  std::string text() const {
    std::string text;
    for (const auto& [name, value] : read_)
      text += (text.empty() ? "" : ", ") + name + " is " + shown_json(value);
    return text;
  }

 private:
  const Condition& condition_;
  const FindOutput& find_output_;
  store::ArtifactStore& artifacts_;
  std::map<std::string, nlohmann::json> read_;
};

}  // namespace

std::string lost_need(const StepSpec& step, const Predecessors& before) {
  std::string reason;
  enum class Need { output, end };
  const auto look = [&](const std::string& name, Need need) {
    if (!reason.empty()) return;
    const auto outcome = before.outcome_of(name);
    if (outcome == Outcome::skipped)
      reason = "needs '" + name + "', which was skipped";
    else if (outcome == Outcome::failed || (outcome == Outcome::tolerated && need == Need::output))
      reason = "needs '" + name + "', which failed";
  };
  for (const auto& input : step.inputs)
    for (const auto& source : input.sources)
      if (!input.at_least) look(source.step, Need::output);
  if (step.when)
    for (const auto& [name, value] : step.when->outputs) look(value.source.step, Need::output);
  if (step.matrix)
    for (const auto& axis : step.matrix->axes)
      if (axis.items) look(axis.items->source.step, Need::output);
  if (step.run_on == RunOn::success)
    for (const auto& name : step.after) look(name, Need::end);
  return reason;
}

ConditionValue evaluate(const Condition& condition, const FindOutput& find_output,
                        store::ArtifactStore& artifacts, const std::string& key) {
  Values values(condition, find_output, artifacts);
  const auto written = key + ": " + condition.text;
  try {
    const auto value = core::Expression::parse(condition.text).evaluate([&](const auto& variable) {
      return values.find(variable);
    });
    if (value == true) return {value, {}, {}};
    if (!value) return {value, written, {}};
    const auto text = values.text();
    return {value,
            text.empty() ? written : key + " is false: " + text + " (" + condition.text + ")",
            {}};
  } catch (const core::EnvironmentError&) {
    throw;
  } catch (const std::exception& error) {
    return {std::nullopt, {}, written + ": " + error.what()};
  }
}

ConditionValue decide(const StepSpec& step, const Predecessors& before,
                      store::ArtifactStore& artifacts) {
  if (step.run_on == RunOn::failure && before.all != Outcome::failed) {
    if (before.all == Outcome::unknown)
      return {std::nullopt, "run_on: failure: only if a step before it fails", {}};
    return {false, "run_on: failure, and no step before it has failed", {}};
  }
  if (const auto lost = lost_need(step, before); !lost.empty()) return {false, lost, {}};
  if (auto wrong = too_few(step, before); !wrong.empty())
    return {std::nullopt, {}, std::move(wrong)};
  return step.when ? evaluate(*step.when, before.find_output, artifacts)
                   : ConditionValue{true, {}, {}};
}

bool is_ruled_out(const StepSpec& step, store::ArtifactStore& artifacts) {
  if (!step.when) return false;
  const auto none = [](const SourceSpec&) -> const store::OutputRecord* { return nullptr; };
  return evaluate(*step.when, none, artifacts).value == false;
}

}  // namespace pipeline::engine

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "core/identifier.hpp"
#include "settings/decode.hpp"
#include "spec/data_reader.hpp"
#include "spec/include.hpp"
#include "spec/keys.hpp"
#include "spec/output_reader.hpp"
#include "spec/placeholders.hpp"
#include "spec/step_reader.hpp"

namespace pipeline::spec {
namespace {

using Strings = std::vector<std::string>;

/// Returns the output's offset in `STEP.OUTPUT` or `STEP[...].OUTPUT`; npos for another form.
std::size_t output_offset(std::string_view text) {
  const auto bracket = text.find('[');
  const bool has_selector = bracket != std::string_view::npos;
  const std::string_view separator = has_selector ? "]." : ".";
  const auto end = has_selector ? text.rfind(separator) : text.find(separator);
  if (end == std::string_view::npos || end == 0) return std::string_view::npos;
  const auto output = end + separator.size();
  // Without a selector, `end` is the first dot.
  const bool has_dot_in_step = text.substr(0, bracket).find('.') < end;
  const bool is_plain = output < text.size() && !has_dot_in_step &&
                        text.find_first_of(".[]", output) == std::string_view::npos;
  return is_plain && model::parse_selector(text.substr(0, output - 1)) ? output
                                                                       : std::string_view::npos;
}

constexpr settings::Format reference_text{
    "`STEP.OUTPUT`, or of a step with a matrix `STEP[*].OUTPUT`, `STEP[AXIS=VALUE].OUTPUT` or "
    "`STEP[=].OUTPUT`",
    [](std::string_view text) {
      return settings::formats::word.accepts(text) && output_offset(text) != std::string_view::npos;
    }};

}  // namespace

void StepReader::read_inputs(const core::Value& value, ReadStep& step) {
  if (value.kind != core::Value::Kind::map)
    return settings::report_type(diagnostics_, "inputs",
                                 "a map of names to `STEP.OUTPUT`, paths or URLs", value);
  for (const auto& [name, member] : value.members) {
    if (!slot_name.accepts(name.scalar)) {
      settings::report(diagnostics_, "bad-name",
                       "'" + name.scalar.substr(0, 60) + "' cannot be an input's name", name.span,
                       {std::string("it must be ") + slot_name.expected});
    } else if (member.find("first") || member.find("then")) {
      read_source_by_round(name, member, step);
    } else if (member.find("from") || member.find("missing") || member.find("at_least")) {
      read_gathered(name, member, step);
    } else if (names_parameters(member)) {
      // The data is read when the parameters have values; an empty input keeps its place.
      step.inputs_to_fill.push_back(step.spec.inputs.size());
      step.spec.inputs.push_back({.name = name.scalar, .data = DataSpec{}});
      step.inputs.push_back({{}, member.span});
    } else if (is_data(member)) {
      if (auto data = read_data(name.scalar, member, folder_, diagnostics_)) {
        step.spec.inputs.push_back({.name = name.scalar, .data = std::move(*data)});
        step.inputs.push_back({{}, member.span});
      }
    } else if (auto source = read_source("inputs." + name.scalar, member)) {
      step.spec.inputs.push_back({name.scalar, {std::move(source->second)}});
      step.inputs.push_back({std::move(source->first), member.span});
    } else if (name.scalar == "missing" || name.scalar == "at_least") {
      // read_source() has reported the member: the user took the option for a key of `inputs`.
      diagnostics_.back().suggestion = "to gather what is there: `NAME: {from: STEP[*].OUTPUT, " +
                                       name.scalar + ": " + member.scalar + "}`";
    }
  }
}

/// Reads `STEP.OUTPUT` or, of a step with a matrix, `STEP[...].OUTPUT`; reports anything else.
std::optional<std::pair<model::Selector, SourceSpec>> StepReader::read_source(
    const std::string& key, const core::Value& value) {
  const auto reference = settings::read_text(key, value, reference_text, diagnostics_);
  if (!reference) {
    std::error_code error;
    if (core::is_name(value.scalar) && std::filesystem::exists(folder_ / value.scalar, error))
      diagnostics_.back().suggestion =
          "for the file or folder of that name write `./" + value.scalar + "`";
    return std::nullopt;
  }
  const auto output = output_offset(*reference);
  auto selector = *model::parse_selector(std::string_view(*reference).substr(0, output - 1));
  selector.step = scope_.step_called(selector.step);
  SourceSpec source{selector.step, reference->substr(output)};
  return std::pair(std::move(selector), std::move(source));
}

/// Reads `{from: train[*].model, missing: allow}` or `{from: train[*].model, at_least: 8}`.
void StepReader::read_gathered(const core::Value& name, const core::Value& map, ReadStep& step) {
  static const Strings keys{"from", "missing", "at_least"};
  settings::report_unknown_keys(map, keys, "an input", diagnostics_);
  const auto *from = map.find("from"), *missing = map.find("missing"),
             *least = map.find("at_least");
  if (!from)
    return settings::report(diagnostics_, "missing-key",
                            "the input '" + name.scalar + "' has no 'from'", map.span,
                            {"as in `{from: train[*].model, missing: allow}`"});
  auto source = read_source("from", *from);
  std::optional<unsigned> at_least;
  if (missing && read_word("missing", *missing, {"allow", "fail"}, diagnostics_) == "allow")
    at_least = 0;
  if (missing && least)
    settings::report(diagnostics_, "contradiction",
                     "'missing' and 'at_least' exclude each other: `at_least` already allows some "
                     "to be missing",
                     least->span);
  if (least) at_least = settings::read_count("at_least", *least, diagnostics_);
  if (!source) return;
  step.spec.inputs.push_back(
      {.name = name.scalar, .sources = {std::move(source->second)}, .at_least = at_least});
  step.inputs.push_back({std::move(source->first), from->span});
}

/// Reads `{first: start.state, then: fit.state}`.
void StepReader::read_source_by_round(const core::Value& name, const core::Value& map,
                                      ReadStep& step) {
  static const Strings keys{"first", "then"};
  settings::report_unknown_keys(map, keys, "an input", diagnostics_);
  for (const auto& key : keys)
    if (!map.find(key) && !has_misspelt(map, key))
      settings::report(diagnostics_, "missing-key",
                       "the input '" + name.scalar + "' has no '" + key + "'", map.span,
                       {"the first round takes `first`, each further one `then`, which the round "
                        "before has made"});
  const auto* first_value = map.find("first");
  const auto* then_value = map.find("then");
  if (!first_value || !then_value) return;
  auto first = read_source("first", *first_value);
  auto then = read_source("then", *then_value);
  if (!first || !then) return;
  step.then_sources.push_back({step.spec.inputs.size(), std::move(then->first), then_value->span});
  step.spec.inputs.push_back({.name = name.scalar,
                              .sources = {std::move(first->second)},
                              .then = std::move(then->second)});
  step.inputs.push_back({std::move(first->first), first_value->span});
}

}  // namespace pipeline::spec

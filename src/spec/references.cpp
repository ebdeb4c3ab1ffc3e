#include "spec/references.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <set>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "core/identifier.hpp"
#include "model/graph.hpp"
#include "settings/decode.hpp"
#include "spec/include.hpp"
#include "spec/notebook_reader.hpp"
#include "spec/repeat.hpp"
#include "spec/scalar_places.hpp"
#include "spec/template.hpp"

namespace pipeline::spec {
namespace {

/// Each suggestion is a search among all names, so their number is limited.
constexpr std::size_t max_suggestions = 100;

using Index = std::unordered_map<std::string_view, model::StepIndex>;

std::vector<std::string> names_of(const std::vector<ReadStep>& steps) {
  std::vector<std::string> names;
  for (const ReadStep& step : steps) names.push_back(step.spec.name);
  return names;
}

void report_unknown_step(const std::string& name, core::Span span,
                         const std::vector<ReadStep>& steps, settings::Diagnostics& diagnostics) {
  const bool may_suggest = diagnostics.size() < max_suggestions;
  settings::report(diagnostics, "unknown-step", "there is no step '" + name + "'", span, {},
                   may_suggest ? core::did_you_mean(name, names_of(steps)) : "");
}

/// Returns the step that makes the output; reports a reference to a missing one.
std::optional<model::StepIndex> maker_of(const SourceSpec& source, core::Span span,
                                         const std::vector<ReadStep>& steps, const Index& index,
                                         settings::Diagnostics& diagnostics) {
  const auto maker = index.find(source.step);
  if (maker == index.end()) {
    report_unknown_step(source.step, span, steps, diagnostics);
    return std::nullopt;
  }
  const auto& outputs = steps[maker->second].spec.outputs;
  if (std::any_of(outputs.begin(), outputs.end(),
                  [&](const OutputSpec& output) { return output.name == source.output; }))
    return maker->second;
  std::vector<std::string> names;
  std::string list;
  for (const OutputSpec& output : outputs) {
    names.push_back(output.name);
    list += (list.empty() ? "its outputs: " : ", ") + output.name;
  }
  settings::report(diagnostics, "unknown-output",
                   "step '" + source.step + "' makes no output '" + source.output + "'", span,
                   {names.empty() ? "it has no `outputs`" : list},
                   core::did_you_mean(source.output, names));
  return std::nullopt;
}

/// Returns the steps that `step` depends on; reports invalid dependencies.
std::vector<model::StepIndex> needs_of(const ReadStep& step, const std::vector<ReadStep>& steps,
                                       const Index& index, settings::Diagnostics& diagnostics) {
  std::vector<model::StepIndex> needs;
  const auto add = [&](const SourceSpec& source, core::Span span) {
    const auto known = diagnostics.size();
    if (const auto maker = maker_of(source, span, steps, index, diagnostics))
      return needs.push_back(*maker);
    std::error_code error;
    const auto file = source.step + "." + source.output;
    if (diagnostics.size() > known && diagnostics.back().code == "unknown-step" &&
        std::filesystem::exists(step.scope->folder() / file, error))
      diagnostics.back().suggestion = "for the file of that name write `./" + file + "`";
  };
  for (std::size_t i = 0; i < step.spec.inputs.size(); ++i)
    if (!step.spec.inputs[i].data) add(step.spec.inputs[i].sources.at(0), step.inputs[i].span);
  for (const auto& value : step.condition_values)
    add(step.spec.when->outputs.at(value.name).source, value.span);
  // The sources are checked, but the step does not wait for them: they end a round or begin one.
  for (const auto& then : step.then_sources)
    maker_of(*step.spec.inputs[then.input].then, then.span, steps, index, diagnostics);
  for (const auto& value : step.until_values)
    maker_of(step.spec.repeat->until->outputs.at(value.name).source, value.span, steps, index,
             diagnostics);
  if (step.open)
    for (std::size_t i = 0; i < step.open->spans.size(); ++i)
      if (const auto& items = step.open->spec.axes[i].items)
        add(items->source, step.open->spans[i]);
  for (std::size_t i = 0; i < step.spec.after.size(); ++i) {
    const auto found = index.find(step.spec.after[i]);
    if (found == index.end())
      report_unknown_step(step.spec.after[i], step.after[i].span, steps, diagnostics);
    else
      needs.push_back(found->second);
  }
  return needs;
}

/// Returns why `step` depends on `other`, and the position of the reference.
std::pair<std::string, core::Span> reason_for(const ReadStep& step, const std::string& other) {
  for (std::size_t i = 0; i < step.spec.inputs.size(); ++i)
    if (!step.spec.inputs[i].data && step.spec.inputs[i].sources.at(0).step == other)
      return {"'" + step.spec.name + "' takes its input '" + step.spec.inputs[i].name + "' from '" +
                  other + "'",
              step.inputs[i].span};
  for (const auto& value : step.condition_values)
    if (step.spec.when->outputs.at(value.name).source.step == other)
      return {"the `when` of '" + step.spec.name + "' depends on '" + other + "'", value.span};
  if (step.open)
    for (std::size_t i = 0; i < step.open->spans.size(); ++i)
      if (const auto& axis = step.open->spec.axes[i];
          axis.items && axis.items->source.step == other)
        return {"the matrix of '" + step.spec.name + "' takes its values from '" + other + "'",
                step.open->spans[i]};
  for (std::size_t i = 0; i < step.spec.after.size(); ++i)
    if (step.spec.after[i] == other)
      return {"'" + step.spec.name + "' comes after '" + other + "'", step.after[i].span};
  return {};
}

void report_cycle(const std::vector<model::StepIndex>& cycle, const std::vector<ReadStep>& steps,
                  settings::Diagnostics& diagnostics) {
  const auto [reason, span] = reason_for(steps[cycle[0]], steps[cycle[1 % cycle.size()]].spec.name);
  if (cycle.size() == 1) {
    settings::report(diagnostics, "cycle", "step '" + steps[cycle[0]].spec.name + "' needs itself",
                     span, {reason});
    return;
  }
  std::string path;
  std::vector<std::string> notes;
  constexpr std::size_t max_notes = 10;
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    path += steps[cycle[i]].spec.name + " -> ";
    if (i == max_notes) notes.push_back("... and " + std::to_string(cycle.size() - i) + " more");
    if (i >= max_notes) continue;
    const auto [why, where] =
        reason_for(steps[cycle[i]], steps[cycle[(i + 1) % cycle.size()]].spec.name);
    notes.push_back((where.file == span.file ? "line " + std::to_string(where.line) + ": " : "") +
                    why);
  }
  settings::report(diagnostics, "cycle",
                   "these steps wait for each other: " + path + steps[cycle[0]].spec.name, span,
                   std::move(notes));
}

bool names_checkpoint(const Command& command) {
  for (const auto& argument : command.arguments)
    for (const auto& part : argument.parts) {
      const auto* reference = std::get_if<Template::Reference>(&part);
      if (reference ? reference->placeholder == Template::Placeholder::checkpoint
                    : std::get<std::string>(part).find("PIPE_CHECKPOINT") != std::string::npos)
        return true;
    }
  return false;
}

/// Returns the names that the command of a step can refer to.
TemplateNames names_for_command(const ReadStep& step) {
  const StepSpec& spec = step.spec;
  TemplateNames names;
  for (const auto& input : spec.inputs) names.inputs.push_back(input.name);
  // An input whose source is wrong has been reported, so its use is not a second error.
  if (const core::Value* inputs = step.body->find("inputs"))
    for (const auto& [name, source] : inputs->members) names.inputs.push_back(name.scalar);
  if (step.open)  // An item may be a file.
    for (const auto& axis : step.open->spec.axes)
      if (axis.items) names.inputs.push_back(axis.name);
  for (const auto& output : spec.outputs) names.outputs.push_back(output.name);
  for (const auto& parameter : spec.parameters) names.parameters.push_back(parameter.first);
  names.values = &spec.parameters;
  names.has_nodes = step.body->find("nodes") != nullptr;
  for (const auto& variable : spec.environment) names.environment.push_back(variable.first);
  std::sort(names.inputs.begin(), names.inputs.end());
  const auto repeated = std::ranges::unique(names.inputs);
  names.inputs.erase(repeated.begin(), repeated.end());
  std::sort(names.outputs.begin(), names.outputs.end());
  return names;
}

/// Reads the command of a step: a list of arguments, or a text for a shell.
class CommandReader {
 public:
  CommandReader(ReadStep& step, ScalarPlaces& places, settings::Diagnostics& diagnostics)
      : step_(step),
        command_(step.spec.command),
        places_(places),
        diagnostics_(diagnostics),
        names_(names_for_command(step)) {}

  void read() {
    const core::Value& value = *step_.body->find("command");
    if (value.kind == core::Value::Kind::list)
      read_list(value);
    else if (value.kind == core::Value::Kind::scalar)
      read_shell_text(value);
    else
      settings::report_type(diagnostics_, "command", "a list of texts, or a text for a shell",
                            value);
    step_.spec.checkpoint |= names_checkpoint(command_);
  }

 private:
  void read_list(const core::Value& list);
  void read_shell_text(const core::Value& value);
  void add_argument(const core::Value& scalar);
  void report_empty(const core::Value& value) {
    settings::report(diagnostics_, "empty-command",
                     "the command of step '" + step_.spec.name + "' is empty", value.span);
  }

  ReadStep& step_;
  Command& command_;
  ScalarPlaces& places_;
  settings::Diagnostics& diagnostics_;
  const TemplateNames names_;
};

void CommandReader::read_list(const core::Value& list) {
  command_.interpreter.clear();
  if (const core::Value* shell = step_.body->find("shell"))
    settings::report(diagnostics_, "contradiction",
                     "step '" + step_.spec.name +
                         "' has a 'shell', but its command is a list, which no shell reads",
                     shell->span, {}, "write the command as one text, or remove 'shell'");
  if (list.items.empty()) return report_empty(list);
  if (list.items.size() == 1 && list.items[0].scalar.find(' ') != std::string::npos &&
      !list.items[0].scalar.starts_with('/') && !list.items[0].scalar.starts_with("./"))
    settings::report(
        diagnostics_, "bad-command",
        "no program has blanks in its name: each item of the list is one word", list.items[0].span,
        {}, "did you mean `command: " + list.items[0].scalar + "`, a text that a shell reads?");
  for (const core::Value& item : list.items) {
    if (item.kind != core::Value::Kind::scalar)
      settings::report(diagnostics_, "wrong-type",
                       "each of 'command' must be a text, not " + settings::describe(item),
                       item.span);
    else if (!settings::formats::text.accepts(item.scalar))
      settings::report(diagnostics_, "control-character",
                       "a command must not have control characters", item.span);
    else
      add_argument(item);
  }
  if (list.items[0].kind == core::Value::Kind::scalar && list.items[0].scalar.empty())
    settings::report(diagnostics_, "empty-command", "the program to execute is an empty text",
                     list.items[0].span);
}

void CommandReader::read_shell_text(const core::Value& value) {
  command_.shell = true;
  if (value.scalar.find_first_not_of(" \t\n") == std::string::npos)
    report_empty(value);
  else if (!settings::formats::text.accepts(value.scalar))
    settings::report(diagnostics_, "control-character",
                     "a command must not have control characters", value.span);
  else
    add_argument(value);
}

/// Adds an argument, and reports wrong placeholders at their positions.
void CommandReader::add_argument(const core::Value& scalar) {
  std::vector<TemplateProblem> problems;
  command_.arguments.push_back(parse_template(scalar.scalar, names_, problems));
  for (TemplateProblem& problem : problems)
    settings::report(diagnostics_, problem.code, std::move(problem.message),
                     places_.find(scalar, problem.offset, problem.length), std::move(problem.notes),
                     std::move(problem.suggestion));
}

/// Adds each name after `PIPE_PARAM_` in the text to `variables`.
void find_parameter_variables(std::string_view text, std::set<std::string>& variables) {
  constexpr std::string_view prefix = "PIPE_PARAM_";
  for (auto at = text.find(prefix); at != std::string_view::npos; at = text.find(prefix, at + 1)) {
    auto end = at;
    while (end < text.size() &&
           (text[end] == '_' || std::isalnum(static_cast<unsigned char>(text[end]))))
      ++end;
    variables.emplace(text.substr(at, end - at));
  }
}

/// Frees the command's text, so that the commands of a large pipeline are not in memory twice.
void forget_command(ReadStep& step) {
  auto& members = step.body->members;
  if (members.empty()) return;
  std::erase_if(members.vector(),
                [](const auto& member) { return member.first.scalar == "command"; });
  if (members.empty())
    members.clear();
  else
    members.shrink_to_fit();
}

}  // namespace

std::vector<std::string> parameters_read_by(std::string_view text,
                                            const std::vector<std::string>& parameters) {
  std::set<std::string> variables;
  find_parameter_variables(text, variables);
  std::vector<std::string> read;
  for (const auto& name : parameters)
    if (variables.contains(core::variable_name("PIPE_PARAM_", name)) ||
        variables.contains(core::same_case_variable_name("PIPE_PARAM_", name)))
      read.push_back(name);
  return read;
}

void keep_named_parameters(std::vector<ReadStep>& steps) {
  for (ReadStep& step : steps) {
    std::set<std::string> named;
    if (step.own_parameters) named = std::move(*step.own_parameters);
    for (auto& axis : axes_of(step)) named.insert(std::move(axis));
    if (step.spec.repeat) named.insert(round_parameter);
    std::string literals;
    for (const auto& argument : step.spec.command.arguments)
      for (const auto& part : argument.parts)
        if (const auto* reference = std::get_if<Template::Reference>(&part)) {
          if (reference->placeholder == Template::Placeholder::parameter)
            named.insert(reference->name.substr(0, reference->name.find('.')));
        } else {
          literals += std::get<std::string>(part) + '\n';
        }
    std::vector<std::string> all;
    for (const auto& [name, value] : step.spec.parameters) all.push_back(name);
    for (auto& name : parameters_read_by(literals, all)) named.insert(std::move(name));
    std::erase_if(step.spec.parameters,
                  [&](const auto& parameter) { return !named.contains(parameter.first); });
  }
}

void check_references(const std::vector<ReadStep>& steps, settings::Diagnostics& diagnostics) {
  Index index;
  index.reserve(steps.size());
  for (model::StepIndex i = 0; i < steps.size(); ++i) index.emplace(steps[i].spec.name, i);
  std::vector<std::vector<model::StepIndex>> needs;
  needs.reserve(steps.size());
  for (const ReadStep& step : steps) needs.push_back(needs_of(step, steps, index, diagnostics));
  constexpr int max_cycles = 10;
  for (int i = 0; i < max_cycles; ++i) {
    const auto cycle = model::Graph(needs).find_cycle();
    if (cycle.empty()) return;
    report_cycle(cycle, steps, diagnostics);
    std::erase(needs[cycle[0]], cycle[1 % cycle.size()]);
  }
}

void read_commands(std::vector<ReadStep>& steps, const std::vector<std::string_view>& sources,
                   settings::Diagnostics& diagnostics) {
  ScalarPlaces places(sources);
  for (ReadStep& step : steps) {
    if (step.body->find("command"))
      CommandReader(step, places, diagnostics).read();
    else if (step.notebook)
      add_notebook_command(step);
    forget_command(step);
  }
}

}  // namespace pipeline::spec

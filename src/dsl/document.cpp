#include "dsl/document.hpp"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "core/utf8.hpp"
#include "dsl/declaration.hpp"
#include "model/value_builder.hpp"
#include "settings/settings.hpp"
#include "spec/nodes_reader.hpp"
#include "spec/notify_reader.hpp"
#include "spec/references.hpp"
#include "spec/services_reader.hpp"

namespace pipeline::dsl {
namespace {

using model::empty_value, model::set, model::value_of;
using nlohmann::json;

void add(core::Value& map, const std::string& key, const json& value) {
  set(map, key, value_of(value, map.span));
}
/// Adds the value unless it is null, or an empty list or map.
void add_unless_empty(core::Value& map, const std::string& key, const json& value) {
  if (!value.empty()) add(map, key, value);
}

std::string duration(Duration time) { return std::to_string(time.count()) + "ms"; }

/// Adds the options that StepOptions and PipelineOptions have in common.
template <class Options>
void add_common(core::Value& map, const Options& options) {
  if (options.code) add(map, "code", json(options.code.items()));
  json environment = json::object();
  for (const auto& [name, value] : options.environment)
    environment[name] = value ? json(*value) : json();
  add_unless_empty(map, "environment", environment);
  json secrets = json::array();
  for (const auto& secret : options.secrets)
    secrets.push_back(secret.file ? json{{"name", secret.name}, {"file", *secret.file}}
                                  : json(secret.name));
  add_unless_empty(map, "secrets", secrets);
  Settings settings;
  settings.docker = options.docker;
  settings.resources = options.resources;
  settings.kubernetes = options.kubernetes;
  settings.slurm = options.slurm;
  auto written = settings::to_json(settings);
  for (auto group = written.begin(); group != written.end();)
    group = group->empty() ? written.erase(group) : std::next(group);
  // The notation for `requirements: FILE` is {"-r FILE"}.
  if (const auto& list = options.docker.requirements.items();
      list.size() == 1 && list[0].starts_with("-r "))
    written["docker"]["requirements"] = list[0].substr(3);
  add_unless_empty(map, "settings", written);
  add_unless_empty(map, "retry", settings::to_json(options.retry));
  if (options.timeout) add(map, "timeout", json(duration(*options.timeout)));
  if (options.stalled_after) add(map, "stalled_after", json(duration(*options.stalled_after)));
  json cache = json::object();
  if (options.cache_max_age) cache["max_age"] = duration(*options.cache_max_age);
  if (!options.cache_until.empty()) cache["until"] = options.cache_until;
  if (options.cache == false || (options.cache && cache.empty()))
    add(map, "cache", json(*options.cache));
  else
    add_unless_empty(map, "cache", cache);
  if (options.shell.size() == 1 && (options.shell[0] == "sh" || options.shell[0] == "bash"))
    add(map, "shell", json(options.shell[0]));
  else
    add_unless_empty(map, "shell", json(options.shell));
}

std::string json_text(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// Returns a parameter's value. For an argument that is not a text, texts and null become JSON in a
/// text, so that the function always decodes its value from JSON.
json parameter_of(const detail::Argument& argument, const json& value) {
  const bool is_unambiguous = value.is_number() || value.is_boolean() || value.is_structured();
  return argument.is_text || is_unambiguous ? value : json(json_text(value));
}

/// Returns a value of an axis, where a list or map becomes JSON in a text, too.
json axis_value(const detail::Argument& argument, const json& value) {
  return value.is_structured() ? json(json_text(value)) : parameter_of(argument, value);
}

std::string reference(const AnyArtifact& artifact, const std::string& selector) {
  return artifact.step + selector + "." + artifact.output;
}

/// Returns the pipeline's parameters that are passed to a command as variables, besides the
/// parameters that the command lists itself.
std::vector<std::string> passed_parameters(const detail::Declaration& step,
                                           const std::vector<std::string>& of_pipeline) {
  if (step.options.all_parameters) return of_pipeline;
  return spec::parameters_read_by(step.script, of_pipeline);
}

/// Returns the source of an input: a reference or, for the artifact that a round takes, a reference
/// for the first round and another one for further rounds.
json source_of(const Pipeline& pipeline, const std::string& written) {
  const auto number = detail::repetition_of(written);
  if (!number || *number >= pipeline.repetitions().size()) return written;
  const auto& repetition = pipeline.repetitions()[*number];
  return {{"first", reference(repetition.first, "")}, {"then", reference(repetition.next, "")}};
}

/// Returns the source of a command's input, which may be an address with its digest or version, or
/// a published artifact.
json source_of(const Pipeline& pipeline, const NamedInput& input) {
  if (input.least) return {{"from", input.reference}, {"at_least", *input.least}};
  if (input.optional) return {{"artifact", input.reference}, {"optional", true}};
  if (input.sha256.empty() && input.version.empty()) return source_of(pipeline, input.reference);
  json map{{"url", input.reference}};
  if (!input.sha256.empty()) map["sha256"] = input.sha256;
  if (!input.version.empty()) map["version"] = input.version;
  return map;
}

/// Returns the step that declares the repetition: the first one without a matrix.
const detail::Declaration* declarer_of(const Pipeline& pipeline, std::size_t repetition) {
  const detail::Declaration* first = nullptr;
  for (const auto& step : pipeline.steps()) {
    if (step.repeat != repetition) continue;
    if (!first) first = &step;
    const bool is_mapped = std::ranges::any_of(step.arguments, [](const auto& argument) {
      return argument.is_axis || argument.selector == "[=]";
    });
    if (!is_mapped && step.options.matrix->is_null()) return &step;
  }
  return first;
}

/// Returns the step's `repeat`: the repetition, or the name of the step that declares it.
json repeat_of(const Pipeline& pipeline, const detail::Declaration& step) {
  const auto* declarer = declarer_of(pipeline, *step.repeat);
  if (declarer != &step) return declarer->options.name;
  const auto& options = pipeline.repetitions()[*step.repeat].options;
  json repeat{{"max", options.max}};
  if (!options.until.expression.empty()) repeat["until"] = options.until.expression;
  return repeat;
}

/// The matrix, parameters and inputs of a step, from its options and the arguments of its call.
struct StepArguments {
  core::Value axes;  ///< A map; empty if another step's matrix is used, or none.
  json matrix, parameters = json::object(), inputs = json::object();
};

/// Returns the arguments of a step.
/// @param of_pipeline the names of the pipeline's parameters
StepArguments arguments_of(const Pipeline& pipeline, const detail::Declaration& step,
                           core::Span span, const std::vector<std::string>& of_pipeline) {
  StepArguments found;
  auto& [axes, matrix, parameters, inputs] = found;
  matrix = *step.options.matrix;
  // The order of the arguments determines the order of the instances.
  axes = value_of(matrix.is_object() ? matrix : json::object(), span);
  for (const auto& name : passed_parameters(step, of_pipeline)) parameters[name] = nullptr;
  for (const auto& [name, value] : step.options.parameters) parameters[name] = *value;
  for (const auto& argument : step.arguments) {
    if (argument.slot == detail::Slot::context) continue;
    if (argument.items) {
      add(axes, argument.name, "${" + argument.items->step + "." + argument.items->output + "[*]}");
    } else if (argument.is_axis) {
      json values = json::array();
      for (const auto& value : argument.axis) values.push_back(axis_value(argument, *value));
      add(axes, argument.name, values);
    } else if (argument.slot == detail::Slot::parameter) {
      parameters[argument.name] =
          argument.of_pipeline ? json() : parameter_of(argument, *argument.value);
    } else if (!argument.sources.empty()) {
      inputs[argument.name] =
          source_of(pipeline, reference(argument.sources[0], argument.selector));
      if (const auto& least = argument.sources[0].least;
          least && argument.slot == detail::Slot::gathered)
        inputs[argument.name] = {{"from", inputs[argument.name]}, {"at_least", *least}};
      if (argument.selector == "[=]" && matrix.is_null()) matrix = argument.sources[0].step;
    }
  }
  for (const auto& input : step.inputs) inputs[input.name] = source_of(pipeline, input);
  return found;
}

json outputs_of(const detail::Declaration& step) {
  json outputs = json::object();
  for (const auto& output : step.outputs) {
    auto& written = outputs[output.name] = output.file_name;
    if (output.metrics || output.temp || output.from_all_nodes)
      written = {{"file", output.file_name}};
    if (output.metrics) written["metrics"] = true;
    if (output.temp) written["temp"] = true;
    if (output.from_all_nodes) written["from"] = "all";
  }
  return outputs;
}

/// Adds the command of a step, or its notebook.
/// @param program as for document_of()
void add_command(core::Value& map, const detail::Declaration& step, const std::string& program) {
  if (step.entry) {
    auto words = json::array();
    if (!program.empty()) words.push_back(program);
    words.push_back("--pipe-step");
    words.push_back(step.options.name);
    add(map, "command", words);
  } else if (!step.notebook.empty()) {
    add(map, "notebook", json(step.notebook));
  } else {
    add(map, "command", step.shell ? json(step.words.at(0)) : json(step.words));
  }
}

/// Returns the document of a step.
/// @param of_pipeline the names of the pipeline's parameters
core::Value step_of(const Pipeline& pipeline, const detail::Declaration& step, core::Span span,
                    const std::string& program, const std::vector<std::string>& of_pipeline) {
  const auto& options = step.options;
  auto map = empty_value(core::Value::Kind::map, span);
  add_unless_empty(map, "description",
                   options.description.empty() ? json() : json(options.description));
  add_unless_empty(map, "orchestrator",
                   options.orchestrator.empty() ? json() : json(options.orchestrator));
  auto given = arguments_of(pipeline, step, span, of_pipeline);
  if (!given.axes.members.empty())
    set(map, "matrix", std::move(given.axes));
  else if (!given.matrix.is_null())
    add(map, "matrix", given.matrix);
  if (step.repeat) add(map, "repeat", repeat_of(pipeline, step));
  add_command(map, step, program);
  if (!step.entry)
    add_unless_empty(map, "version", options.version.empty() ? json() : json(options.version));
  add_unless_empty(map, "parameters", given.parameters);
  add_unless_empty(map, "inputs", given.inputs);
  add_unless_empty(map, "outputs", outputs_of(step));
  add_unless_empty(map, "after", json(options.after));
  if (!options.when.expression.empty()) add(map, "when", json(options.when.expression));
  if (options.checkpoint) add(map, "checkpoint", json(true));
  add_unless_empty(map, "publish", json(options.publish));
  if (!options.publish_to.empty()) add(map, "publish_to", json(options.publish_to));
  if (options.allow_failure) add(map, "allow_failure", json(true));
  if (!options.wait.empty()) add(map, "wait", json(options.wait));
  if (options.max_parallel) add(map, "max_parallel", json(options.max_parallel));
  add_unless_empty(map, "uses", json(options.uses));
  add_unless_empty(map, "services", spec::services_document(options.services));
  if (options.nodes) add(map, "nodes", spec::nodes_document(options.nodes));
  if (options.run_on)
    add(map, "run_on",
        json(*options.run_on == RunOn::failure  ? "failure"
             : *options.run_on == RunOn::always ? "always"
                                                : "success"));
  if (step.entry && !options.code) add(map, "code", json::array());
  add_common(map, options);
  return map;
}

/// Reports texts that are not UTF-8, which neither a file nor JSON can hold.
/// @param name of the member that the value belongs to
void check_texts(const core::Value& value, const std::string& name,
                 settings::Diagnostics& diagnostics) {
  if (!core::is_utf8(value.scalar))
    diagnostics.push_back(
        {std::string(not_utf8), "the text of '" + name + "' is not UTF-8", value.span, {}, {}});
  for (const auto& item : value.items) check_texts(item, name, diagnostics);
  for (const auto& member : value.members)
    check_texts(member.second, member.first.scalar, diagnostics);
}

/// Checks the steps one after another, and collects the parameters of the pipeline that they use.
class StepsCheck {
 public:
  StepsCheck(const Pipeline& pipeline, settings::Diagnostics& diagnostics)
      : pipeline_(pipeline), diagnostics_(diagnostics) {
    for (const auto& [name, value] : pipeline.options().parameters) parameters[name] = *value;
    for (const auto& step : pipeline.steps())
      for (const auto& output : step.outputs) outputs_.emplace(step.options.name, output.name);
  }

  /// @param number number of the step, from 1
  void check(const detail::Declaration& step, unsigned number) {
    number_ = number;
    const auto& name = step.options.name;
    for (const auto& problem : step.problems) report("bad-step", "step '" + name + "': " + problem);
    if (const auto [other, is_new] = first_with_name.emplace(name, number); !is_new)
      report("duplicate-key", "two steps are called '" + name + "'",
             {"the other one is in line " +
                  std::to_string(pipeline_.steps()[other->second - 1].where.line()),
              "give this one a `.name` of its own"});
    for (const auto& argument : step.arguments) {
      if (argument.slot == detail::Slot::gathered && argument.sources.empty())
        report("bad-step",
               "step '" + name + "' gathers '" + argument.name + "' from no step at all");
      // The reader of the document checks the first source.
      for (std::size_t i = 1; i < argument.sources.size(); ++i)
        if (const auto& source = argument.sources[i];
            !outputs_.contains({source.step, source.output}))
          report("unknown-step",
                 "step '" + name + "' gathers '" + argument.name + "' from '" + source.step + '.' +
                     source.output + "', which no step of this pipeline makes",
                 {"an artifact belongs to the pipeline that its step was added to"});
      if (argument.of_pipeline) collect(argument);
    }
  }

  json parameters = json::object();                 ///< The pipeline's parameters.
  std::map<std::string, unsigned> first_with_name;  ///< Number of the first step of each name.

 private:
  void report(std::string code, std::string message, std::vector<std::string> notes = {}) {
    diagnostics_.push_back(
        {std::move(code), std::move(message), core::Span{number_, 1, 1}, std::move(notes), {}});
  }
  /// Adds a parameter of the pipeline that a step uses.
  void collect(const detail::Argument& argument) {
    const auto value = parameter_of(argument, *argument.value);
    const auto known = parameters.find(argument.name);
    if (known == parameters.end())
      parameters[argument.name] = value;
    else if (*known != value)
      report("contradiction",
             "the parameter '" + argument.name + "' is " + value.dump() + " here, and " +
                 known->dump() + " where it is used before",
             {"create one pl::param() and pass it to both"});
  }

  const Pipeline& pipeline_;
  settings::Diagnostics& diagnostics_;
  std::set<std::pair<std::string_view, std::string_view>> outputs_;
  unsigned number_ = 0;
};

}  // namespace

Document document_of(const Pipeline& pipeline, const std::string& program) {
  Document document;
  const auto& options = pipeline.options();
  auto& root = document.root = empty_value(core::Value::Kind::map, core::Span{});
  add(root, "name", json(pipeline.name()));
  if (!options.description.empty()) add(root, "description", json(options.description));
  add_unless_empty(root, "tags", json(options.tags));
  add_unless_empty(root, "headline", json(options.headline));
  add_unless_empty(root, "notify", spec::notify_document(options.notify));
  if (options.execution_mode != ExecutionMode::continue_on_failure)
    add(root, "execution_mode",
        json(options.execution_mode == ExecutionMode::fail_fast ? "fail_fast" : "stop_on_failure"));

  StepsCheck check(pipeline, document.diagnostics);
  unsigned number = 0;
  for (const auto& step : pipeline.steps()) check.check(step, ++number);
  add_unless_empty(root, "parameters", check.parameters);
  add_common(root, options);

  std::vector<std::string> names;
  for (const auto& [name, value] : check.parameters.items()) names.push_back(name);
  auto steps = empty_value(core::Value::Kind::map, core::Span{});
  number = 0;
  for (const auto& step : pipeline.steps()) {
    const core::Span span{++number, 1, 1};
    // Appended directly, because set() searches all members.
    if (check.first_with_name[step.options.name] == number)
      steps.members.push_back({model::plain_value(step.options.name, span),
                               step_of(pipeline, step, span, program, names)});
  }
  set(root, "steps", std::move(steps));
  check_texts(root, pipeline.name(), document.diagnostics);
  return document;
}

}  // namespace pipeline::dsl

#include "spec/pipeline_file.hpp"

#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "settings/decode.hpp"
#include "spec/condition.hpp"
#include "spec/env_file.hpp"
#include "spec/expansion.hpp"
#include "spec/json_text.hpp"
#include "spec/references.hpp"
#include "spec/step_reader.hpp"
#include "spec/task_definition.hpp"
#include "spec/value_builder.hpp"
#include "spec/yaml_writer.hpp"
#include "yaml/document.hpp"

namespace pipeline::spec {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

void read_execution_mode(const core::Value& value, ExecutionMode& mode,
                         settings::Diagnostics& diagnostics) {
  static const std::vector<std::pair<std::string, ExecutionMode>> modes{
      {"fail_fast", ExecutionMode::fail_fast},
      {"stop_on_failure", ExecutionMode::stop_on_failure},
      {"continue_on_failure", ExecutionMode::continue_on_failure}};
  std::vector<std::string> names;
  for (const auto& [name, each] : modes) names.push_back(name);
  const auto word = read_word("execution_mode", value, names, diagnostics);
  for (const auto& [name, each] : modes)
    if (word == name) mode = each;
}

void read_header(const core::Value& root, PipelineSpec& pipeline,
                 settings::Diagnostics& diagnostics) {
  constexpr settings::Format name_format{
      "a name of letters, digits, `_`, `-` and `.` that begins with a letter or digit",
      core::is_name};
  report_keys(root, pipeline_keys, "the pipeline", diagnostics);
  for (const auto& [key, value] : root.members) {
    if (key.scalar == "name")
      pipeline.name = settings::read_text("name", value, name_format, diagnostics).value_or("");
    else if (key.scalar == "description")
      pipeline.description =
          settings::read_text("description", value, settings::formats::text, diagnostics)
              .value_or("");
    else if (key.scalar == "tags")
      pipeline.tags = settings::read_texts("tags", value, settings::formats::word, diagnostics)
                          .value_or(std::vector<std::string>{});
    else if (key.scalar == "execution_mode")
      read_execution_mode(value, pipeline.execution_mode, diagnostics);
  }
  if (!root.find("name") && !has_misspelt(root, "name"))
    settings::report(diagnostics, "missing-key", "the pipeline has no 'name'", root.span);
}

/// Reads an option's value with the type of the file's own value: a text stays a text even if it
/// reads as a number.
std::optional<nlohmann::json> read_option(const std::string& option, const std::string& text,
                                          const nlohmann::json& declared,
                                          settings::Diagnostics& diagnostics) {
  if (declared.is_string()) return text;
  const auto json = settings::plain_to_json(text);
  if (declared.is_number() ? json && json->is_number() : json && json->is_boolean()) return json;
  if (json && !json->is_null()) {
    settings::report(
        diagnostics, "bad-option",
        "--param " + option + "=" + text + ": '" + option + "' is " +
            (declared.is_boolean() ? "true or false" : "a number, such as " + declared.dump()) +
            ", not " + settings::describe(plain_value(text, {})),
        {}, {"a value that is in quotes in the file may be any text"});
    return std::nullopt;
  }
  settings::report(
      diagnostics, "bad-option",
      "--param " + option + "=" + text + ": the value is empty, or a number that is too large", {});
  return std::nullopt;
}

/// Applies `--param k=v` for the pipeline's own parameters.
void apply_pipeline_options(const LoadOptions& options, Defaults& defaults,
                            settings::Diagnostics& diagnostics) {
  for (const auto& [name, text] : options.parameters) {
    const auto declared = defaults.parameters.find(name);
    if (declared == defaults.parameters.end()) continue;
    if (auto value = read_option(name, text, *declared->second, diagnostics))
      declared->second = std::move(*value);
  }
}

/// Applies `--param STEP.k=v`; reports each option that names no parameter.
void apply_step_options(const LoadOptions& options, const Defaults& defaults,
                        std::vector<ReadStep>& steps, settings::Diagnostics& diagnostics) {
  for (const auto& [name, text] : options.parameters) {
    if (defaults.parameters.contains(name)) continue;
    const auto dot = name.find('.');
    const auto step = std::find_if(steps.begin(), steps.end(),
                                   [step_name = name.substr(0, dot)](const ReadStep& each) {
                                     return each.spec.name == step_name;
                                   });
    const auto key = dot == std::string::npos ? std::string() : name.substr(dot + 1);
    if (step != steps.end() && step->spec.parameters.contains(key)) {
      step->own_parameters.insert(key);
      auto& declared = step->spec.parameters[key];
      if (auto value = read_option(name, text, *declared, diagnostics))
        declared = std::move(*value);
      continue;
    }
    if (step != steps.end() && step->matrix && std::ranges::count(step->matrix->axes, key)) {
      settings::report(
          diagnostics, "bad-option",
          "--param " + name + ": '" + key + "' is an axis of the step's matrix, not one value", {},
          {"`--step " + step->spec.name + "[" + key + "=" + text + "]` runs what has this value"});
      continue;
    }
    std::vector<std::string> known;
    for (const auto& [parameter, value] : defaults.parameters) known.push_back(parameter);
    std::string suggestion = core::did_you_mean(name, known);
    for (const ReadStep& each : steps)
      for (const auto& [parameter, value] : each.spec.parameters) {
        if (defaults.parameters.contains(parameter)) continue;
        known.push_back(each.spec.name + "." + parameter);
        if (parameter == name && suggestion.empty())
          suggestion = "did you mean '" + known.back() + "'?";
      }
    if (suggestion.empty()) suggestion = core::did_you_mean(name, known);
    constexpr std::size_t most_named = 20;
    std::string list = known.empty() ? "the pipeline has no parameters" : "it has: ";
    for (std::size_t i = 0; i < std::min(known.size(), most_named); ++i)
      list += (i ? ", " : "") + known[i];
    if (known.size() > most_named) list += ", ...";
    settings::report(diagnostics, "unknown-parameter",
                     "--param " + name + ": there is no such parameter", {}, {std::move(list)},
                     std::move(suggestion));
  }
}

/// Declares the axes as parameters so that commands may refer to them. The values of the instances
/// are set later.
void declare_axes(std::vector<ReadStep>& steps) {
  for (ReadStep& step : steps) {
    const core::Value* matrix = step.body->find("matrix");
    if (!matrix) continue;
    for (const auto& [axis, values] : matrix->members)
      step.spec.parameters.try_emplace(
          axis.scalar);  // Invalid axes are declared too, so that each error is reported once.
    if (step.matrix)
      for (const auto& axis : step.matrix->axes) step.spec.parameters.try_emplace(axis);
  }
}

/// Gives the steps that declare variables of the user's the values in `.env`.
void read_env_file(std::vector<ReadStep>& steps, PipelineSpec& pipeline) {
  const auto file = pipeline.root / env_file_name;
  CopyOnWrite<StringMap> values;
  bool is_read = false;
  for (auto& step : steps) {
    if (!takes_users_variables(step.spec)) continue;
    if (!is_read) {
      std::error_code error;
      if (fs::is_regular_file(file, error)) values = parse_env(core::read_file(file), file);
      pipeline.sources.push_back(file);
      is_read = true;
    }
    step.spec.env_file = values;
  }
}

PipelineSpec read_pipeline(const core::Value& root, std::string_view source, const fs::path& file,
                           const LoadOptions& options, settings::Diagnostics& diagnostics) {
  PipelineSpec pipeline;
  pipeline.file = fs::absolute(file).lexically_normal();
  pipeline.root = pipeline.file.parent_path();
  if (root.kind != core::Value::Kind::map) {
    settings::report(
        diagnostics, "wrong-type",
        "a pipeline file must be a map with `name` and `steps`, not " + settings::describe(root),
        root.span);
    return pipeline;
  }
  read_header(root, pipeline, diagnostics);
  StepReader reader(pipeline.root, diagnostics);
  Defaults defaults = reader.read_defaults(root);
  apply_pipeline_options(options, defaults, diagnostics);

  std::vector<ReadStep> steps;
  if (const core::Value* list = root.find("steps"); !list) {
    if (!has_misspelt(root, "steps"))
      settings::report(diagnostics, "missing-key", "the pipeline has no 'steps'", root.span,
                       {"`pipe init` writes a pipeline to start from"});
  } else if (list->kind != core::Value::Kind::map) {
    settings::report_type(diagnostics, "steps", "a map of names to steps", *list);
    diagnostics.back().notes.push_back("as in `train: {command: [python, train.py]}`");
  } else {
    if (list->members.empty())
      settings::report(diagnostics, "missing-key", "'steps' is empty", list->span);
    steps.reserve(list->members.size());
    for (const auto& [key, body] : list->members)
      steps.push_back(reader.read_step(key, body, defaults));
  }
  read_matrices(steps, diagnostics);
  apply_step_options(options, defaults, steps, diagnostics);
  declare_axes(steps);
  read_conditions(steps, source, diagnostics);
  check_references(steps, diagnostics);
  read_commands(steps, source, diagnostics);
  keep_named_parameters(steps);

  pipeline.sources.assign(reader.sources().begin(), reader.sources().end());
  pipeline.sources.push_back(pipeline.file);
  read_env_file(steps, pipeline);
  pipeline.parameters = std::move(defaults.parameters);
  pipeline.steps = expand(steps, diagnostics);
  order_final_steps(pipeline.steps);
  return pipeline;
}

/// Throws the diagnostics in the file's order, limited to a readable number.
[[noreturn]] void fail(settings::Diagnostics diagnostics, const fs::path& file,
                       std::string_view source) {
  constexpr std::size_t most_reported = 100;
  std::stable_sort(diagnostics.begin(), diagnostics.end(),
                   [](const core::Diagnostic& a, const core::Diagnostic& b) {
                     return std::pair(a.span.line, a.span.column) <
                            std::pair(b.span.line, b.span.column);
                   });
  if (diagnostics.size() > most_reported) {
    const auto more = diagnostics.size() - most_reported;
    diagnostics.resize(most_reported);
    settings::report(diagnostics, "too-many-errors",
                     "and " + std::to_string(more) + " further errors", {});
  }
  throw core::InputError(std::move(diagnostics), file.string(), std::string(source));
}

std::vector<std::string> texts_of(const settings::Diagnostics& notices, const fs::path& file) {
  std::vector<std::string> texts;
  for (const auto& notice : notices)
    texts.push_back(file.filename().string() + ":" + std::to_string(notice.span.line) + ":" +
                    std::to_string(notice.span.column) + ": " + notice.message);
  return texts;
}

std::optional<core::Value> read_document(std::string_view text, const fs::path& file,
                                         settings::Diagnostics& diagnostics) {
  return yaml::parse_yaml(file.extension() == ".json" ? json_as_yaml(text) : std::string(text),
                          diagnostics);
}

std::string read_existing(const fs::path& file) {
  std::error_code error;
  if (fs::is_directory(file, error))
    throw core::InputError("'" + file.string() + "' is a folder, not a pipeline file",
                           fs::exists(file / "pipeline.yaml", error)
                               ? "did you mean '" + (file / "pipeline.yaml").string() + "'?"
                               : "");
  if (!fs::exists(file, error))
    throw core::InputError("there is no file '" + file.string() + "'",
                           "`pipe init` writes a pipeline to start from");
  return core::read_file(file);
}

}  // namespace

PipelineSpec parse(std::string_view text, const fs::path& file, const LoadOptions& options) {
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  settings::Diagnostics diagnostics;
  const auto root = read_document(text, file, diagnostics);
  PipelineSpec pipeline;
  if (root && is_task_definition(*root)) {
    settings::Diagnostics notices;
    pipeline =
        read_pipeline(pipeline_of(*root, diagnostics, notices), text, file, options, diagnostics);
    if (options.notes) *options.notes = {true, texts_of(notices, file)};
  } else if (root) {
    pipeline = read_pipeline(*root, text, file, options, diagnostics);
  }
  if (!diagnostics.empty()) fail(std::move(diagnostics), file, text);
  return pipeline;
}

PipelineSpec read(const core::Value& root, const fs::path& file, const LoadOptions& options) {
  settings::Diagnostics diagnostics;
  auto pipeline = read_pipeline(root, {}, file, options, diagnostics);
  if (!diagnostics.empty()) fail(std::move(diagnostics), {}, {});
  return pipeline;
}

PipelineSpec load(const fs::path& file, const LoadOptions& options) {
  return parse(read_existing(file), file, options);
}

std::string import_task_definition(const fs::path& file, std::vector<std::string>& notices) {
  const auto text = read_existing(file);
  LoadOptions options;
  FileNotes notes;
  options.notes = &notes;
  parse(text, file, options);  // Throws InputError with all errors of the file.
  notices = std::move(notes.notices);
  settings::Diagnostics diagnostics, ignored_notices;
  const auto root = read_document(text, file, diagnostics);
  if (!root || !is_task_definition(*root))
    throw core::InputError(
        "'" + file.string() + "' is no ECS task definition: it has no 'containerDefinitions'",
        "a pipeline file needs no import: `pipe run FILE`");
  return to_yaml(pipeline_of(*root, diagnostics, ignored_notices));
}

}  // namespace pipeline::spec

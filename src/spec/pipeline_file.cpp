#include "spec/pipeline_file.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "code/code_tree.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "core/utf8.hpp"
#include "ecs_import/task_definition.hpp"
#include "model/value_builder.hpp"
#include "settings/decode.hpp"
#include "spec/condition.hpp"
#include "spec/env_file.hpp"
#include "spec/expansion.hpp"
#include "spec/headline_reader.hpp"
#include "spec/include.hpp"
#include "spec/json_text.hpp"
#include "spec/keys.hpp"
#include "spec/notify_reader.hpp"
#include "spec/output_reader.hpp"
#include "spec/parameter_options.hpp"
#include "spec/placeholders.hpp"
#include "spec/references.hpp"
#include "spec/repeat.hpp"
#include "spec/step_reader.hpp"
#include "spec/unfilled.hpp"
#include "spec/yaml_writer.hpp"
#include "yaml/document.hpp"

namespace pipeline::spec {
namespace {

namespace fs = std::filesystem;

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
    else if (key.scalar == "notify")
      pipeline.notify = read_notify(value, pipeline.root, diagnostics);
    else if (key.scalar == "execution_mode")
      read_execution_mode(value, pipeline.execution_mode, diagnostics);
  }
  if (!root.find("name") && !has_misspelt(root, "name"))
    settings::report(diagnostics, "missing-key", "the pipeline has no 'name'", root.span);
}

/// Declares the axes, and the number of a round, as parameters that commands may refer to. The
/// values of the instances are set later.
void declare_axes(std::vector<ReadStep>& steps) {
  for (ReadStep& step : steps) {
    if (step.spec.repeat) step.spec.parameters[round_parameter] = nullptr;
    const core::Value* matrix = step.body->find("matrix");
    if (!matrix) continue;
    for (const auto& [axis, values] : matrix->members)
      // Invalid axes are declared, too, so that each error is reported once.
      step.spec.parameters.try_emplace(axis.scalar);
    for (const auto& axis : axes_of(step)) step.spec.parameters.try_emplace(axis);
  }
}

/// Reads the defaults of a file that is included by another one.
void read_included_defaults(FileScope& scope, StepReader& reader, StepReader& including,
                            settings::Diagnostics& diagnostics) {
  scope.defaults = reader.read_defaults(scope.root);
  if (scope.parameters)
    give_parameters(scope,
                    including.read_given_parameters(*scope.parameters, scope.parent->defaults),
                    diagnostics);
  // Patterns of `code` refer to the file's own folder, so that it does not inherit them.
  auto code = std::move(scope.defaults.code);
  inherit(scope.defaults, scope.parent->defaults);
  scope.defaults.code = std::move(code);
}

/// Gives the values in `.env` to the steps that take variables from the user's environment.
void read_env_file(std::vector<ReadStep>& steps, PipelineSpec& pipeline) {
  const auto file = pipeline.root / code::env_file_name;
  CopyOnWrite<StringMap> values;
  bool is_read = false;
  for (auto& step : steps) {
    if (!takes_users_variables(step.spec)) continue;
    if (!is_read) {
      values = parse_env(core::read_if_file(file), file);
      pipeline.sources.push_back(file);
      is_read = true;
    }
    step.spec.env_file = values;
  }
}

std::size_t step_count(const FileScope& scope) {
  const core::Value* list = scope.root.find("steps");
  return list ? list->members.size() : 0;
}

std::size_t memory_of(const Defaults& defaults) {
  return model::memory_of(defaults.parameters) + model::memory_of(defaults.environment) +
         model::memory_of(defaults.secrets);
}

/// Takes memory for the copies of the file's defaults in its steps; returns false if there is too
/// little. Steps without settings of their own share the file's settings.
bool take_defaults(const FileScope& scope, MemoryBudget& budget) {
  const core::Value* list = scope.root.find("steps");
  if (!list) return true;
  const auto with_settings = std::ranges::count_if(
      list->members,
      [](const core::Value::Member& step) { return step.second.find("settings") != nullptr; });
  const auto settings =
      with_settings == 0
          ? 0
          : model::memory_of(settings::to_json(*std::as_const(scope.defaults.settings)));
  const std::string maker = "the parameters and settings that each step takes over";
  return budget.take(list->members.size(), memory_of(scope.defaults), maker, list->span) &&
         budget.take(static_cast<std::size_t>(with_settings), settings, maker, list->span);
}

/// Takes memory for the instances of the step's matrix; returns false if there is too little.
/// Settings that refer to parameters are copied for each instance.
bool take_instances(const ReadStep& step, MemoryBudget& budget) {
  if (!step.matrix) return true;
  auto bytes = model::memory_of(step.spec);
  if (!step.keys_to_fill.empty())
    bytes += model::memory_of(settings::to_json(*std::as_const(step.spec.settings)));
  return budget.take(step.matrix->instances.size(), bytes,
                     "the matrix of step '" + step.spec.name + "'",
                     step.body->find("matrix")->span);
}

/// @param specs must have the capacity for all steps, because `steps` refer to its elements
void read_steps(FileScope& scope, StepReader& reader, std::vector<StepSpec>& specs,
                std::vector<ReadStep>& steps, settings::Diagnostics& diagnostics) {
  const auto found = std::ranges::find_if(
      scope.root.members, [](const auto& member) { return member.first.scalar == "steps"; });
  core::Value* const list = found == scope.root.members.end() ? nullptr : &found->second;
  if (!list) {
    if (!scope.parent && !has_misspelt(scope.root, "steps") && !scope.root.find("include"))
      settings::report(diagnostics, "missing-key", "the pipeline has no 'steps'", scope.root.span,
                       {"`pipe init` writes a pipeline to start from"});
  } else if (list->kind != core::Value::Kind::map) {
    settings::report_type(diagnostics, "steps", "a map of names to steps", *list);
    diagnostics.back().notes.push_back("as in `train: {command: [python, train.py]}`");
  } else {
    if (list->members.empty())
      settings::report(diagnostics, "missing-key", "'steps' is empty", list->span);
    for (auto& [key, body] : list->members)
      steps.push_back(reader.read_step(key, body, scope.defaults, specs.emplace_back()));
  }
}

/// Reports steps of different files that have the same name.
void check_names(const std::vector<ReadStep>& steps, settings::Diagnostics& diagnostics) {
  std::unordered_map<std::string_view, const ReadStep*> first;
  first.reserve(steps.size());
  for (const ReadStep& step : steps) {
    const auto [other, is_new] = first.emplace(step.key->scalar, &step);
    if (is_new) continue;
    const FileScope& scope = *other->second->scope;
    settings::report(diagnostics, "duplicate-key",
                     "there are two steps called '" + step.spec.name + "'", step.key->span,
                     {"the other one: " + scope.file.filename().string() + ":" +
                      std::to_string(other->second->key->span.line)},
                     "give one of the files a `prefix` where it is included");
  }
}

/// Reads a pipeline's file and those that it includes, in passes over all of their steps.
class PipelineReader {
 public:
  PipelineReader(Files& files, const LoadOptions& given, settings::Diagnostics& diagnostics)
      : files_(files),
        diagnostics_(diagnostics),
        options_(given.parameters, given.parameter_places, diagnostics),
        budget_(diagnostics) {}

  /// Returns the pipeline, without steps if they need more memory than the budget, which is
  /// reported.
  PipelineSpec read() && {
    const FileScope& main = files_.main();
    pipeline_.file = main.file;
    pipeline_.root = main.folder();
    read_header(main.root, pipeline_, diagnostics_);
    if (read_all_defaults() && read_all_steps() && read_parameters()) {
      resolve_references();
      list_sources();
      expand_steps();
    }
    return std::move(pipeline_);
  }

 private:
  bool read_all_defaults();
  bool read_all_steps();
  bool read_parameters();
  void resolve_references();
  void list_sources();
  void expand_steps();

  Files& files_;
  settings::Diagnostics& diagnostics_;
  ParameterOptions options_;
  MemoryBudget budget_;
  std::map<const FileScope*, std::unique_ptr<StepReader>> readers_;
  PipelineSpec pipeline_;
  std::vector<StepSpec> specs_;  ///< Referred to by steps_, so its capacity is that of all steps.
  std::vector<ReadStep> steps_;
};

bool PipelineReader::read_all_defaults() {
  const auto& order = files_.in_order();
  // An including file comes after those that it includes, and its defaults are needed first.
  for (auto each = order.rbegin(); each != order.rend(); ++each) {
    FileScope& scope = **each;
    auto& reader = readers_[&scope];
    reader = std::make_unique<StepReader>(scope, pipeline_.root, budget_, diagnostics_);
    if (scope.parent && !budget_.take(1, memory_of(scope.parent->defaults),
                                      "the parameters that this file takes over", scope.span))
      return false;
    if (scope.parent)
      read_included_defaults(scope, *reader, *readers_.at(scope.parent), diagnostics_);
    else
      scope.defaults = reader->read_defaults(scope.root);
    options_.apply(scope);
    reader->fill(scope.root, scope.defaults, scope.parent ? &scope.parent->defaults : nullptr);
  }
  return true;
}

bool PipelineReader::read_all_steps() {
  const auto& order = files_.in_order();
  std::size_t count = 0;
  for (const FileScope* scope : order) {
    count += step_count(*scope);
    if (!take_defaults(*scope, budget_)) return false;
  }
  specs_.reserve(count);
  steps_.reserve(count);
  for (FileScope* scope : order)
    read_steps(*scope, *readers_.at(scope), specs_, steps_, diagnostics_);
  if (order.size() > 1) check_names(steps_, diagnostics_);  // In one file, keys are unique.
  return true;
}

/// Reads rounds, matrices and the options for parameters, which give the steps their values.
bool PipelineReader::read_parameters() {
  read_repeats(steps_, diagnostics_);
  options_.apply(steps_);
  read_matrices(steps_, budget_, diagnostics_);
  if (budget_.is_spent()) return false;
  options_.report_unknown(files_.main().defaults, steps_);
  declare_axes(steps_);
  return true;
}

/// Reads everything that names a step, an output or a parameter.
void PipelineReader::resolve_references() {
  read_conditions(steps_, files_.texts(), diagnostics_);
  // Frees the texts of the commands before the checks below take memory of their own.
  read_commands(steps_, files_.texts(), diagnostics_);
  check_references(steps_, diagnostics_);
  check_repeats(steps_, diagnostics_);
  if (const auto* headline = files_.main().root.find("headline"))
    pipeline_.headline = read_headline(*headline, steps_, diagnostics_);
  for (ReadStep& step : steps_)
    if (step.must_be_filled()) step.filled_from = step.spec.parameters;
  keep_named_parameters(steps_);
}

/// Lists the files that the pipeline was read from, and the parameters that are filled into them.
void PipelineReader::list_sources() {
  std::set<std::string> filled_names;
  for (const FileScope* scope : files_.in_order()) add_filled_names(scope->root, filled_names);
  pipeline_.filled_parameters.assign(filled_names.begin(), filled_names.end());
  std::set<fs::path> sources;
  for (const auto& [scope, reader] : readers_)
    sources.insert(reader->sources().begin(), reader->sources().end());
  for (const ReadStep& step : steps_) sources.insert(step.files.begin(), step.files.end());
  pipeline_.included = files_.included();
  sources.insert(pipeline_.included.begin(), pipeline_.included.end());
  pipeline_.sources.assign(sources.begin(), sources.end());
  pipeline_.sources.push_back(pipeline_.file);
}

void PipelineReader::expand_steps() {
  read_env_file(steps_, pipeline_);
  pipeline_.parameters = std::move(files_.main().defaults.parameters);
  for (const ReadStep& step : steps_)
    if (!take_instances(step, budget_)) return;
  pipeline_.steps = expand(steps_, std::move(specs_), diagnostics_);
  check_result_folders(pipeline_.steps, pipeline_.sources, diagnostics_);
  check_temporary(pipeline_.steps, diagnostics_);
  order_final_steps(pipeline_.steps);
}

/// Throws the diagnostics in the order of the files, limited to a readable number.
[[noreturn]] void fail(settings::Diagnostics diagnostics, std::vector<core::SourceText> sources) {
  constexpr std::size_t max_reported = 100;
  const auto position = [](const core::Diagnostic& each) {
    return std::tuple(each.span.file, each.span.line, each.span.column);
  };
  std::stable_sort(diagnostics.begin(), diagnostics.end(),
                   [&](const core::Diagnostic& a, const core::Diagnostic& b) {
                     return position(a) < position(b);
                   });
  if (diagnostics.size() > max_reported) {
    const auto more = diagnostics.size() - max_reported;
    diagnostics.resize(max_reported);
    settings::report(diagnostics, "too-many-errors",
                     "and " + std::to_string(more) + " further errors", {});
  }
  throw core::InputError(std::move(diagnostics), std::move(sources));
}

/// A pipeline's own file, or the document that a program makes.
struct Document {
  core::Value root;
  std::string_view text;  ///< For the lines that errors show; may be empty.
  fs::path file;          ///< Relative paths are resolved against its folder.
  fs::path name;          ///< The file's name for messages; empty for a program.
};

/// Reads the pipeline with its included files; throws InputError with all diagnostics.
PipelineSpec read_files(Document document, const LoadOptions& options,
                        settings::Diagnostics& diagnostics) {
  auto& [root, text, file, name] = document;
  if (root.kind != core::Value::Kind::map) {
    settings::report(
        diagnostics, "wrong-type",
        "a pipeline file must be a map with `name` and `steps`, not " + settings::describe(root),
        root.span);
    fail(std::move(diagnostics), {{name.string(), std::string(text)}});
  }
  Files files(std::move(root), fs::absolute(file).lexically_normal(), text, diagnostics);
  // Without one of the files, each use of its steps and parameters would be an error of its own.
  if (files.are_complete()) {
    auto pipeline = PipelineReader(files, options, diagnostics).read();
    if (diagnostics.empty()) return pipeline;
  }
  std::vector<core::SourceText> sources{{name.string(), std::string(text)}};
  // Included files are named in the way that the pipeline's own file was.
  const auto included = files.included();
  for (std::size_t i = 0; i < included.size(); ++i) {
    const auto relative = included[i].lexically_relative(files.main().folder());
    sources.push_back({(name.parent_path() / relative).lexically_normal().string(),
                       std::string(files.texts()[i + 1])});
  }
  fail(std::move(diagnostics), std::move(sources));
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
  auto root = file.extension() == ".json" ? yaml::parse_yaml(json_as_yaml(text), diagnostics)
                                          : yaml::parse_yaml(text, diagnostics);
  if (!root && !diagnostics.empty() && diagnostics.back().code == "empty-file")
    diagnostics.back().notes.emplace_back("`pipe init` writes a pipeline to start from");
  return root;
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

/// Files from this size on, bytes, are not kept in memory while their steps are read.
constexpr std::size_t large_text = 1u << 20;

/// @param owned the string that has `text`; freed once the document is parsed, so that errors show
/// no source lines. Null: the text stays
PipelineSpec parse_document(std::string_view text, std::string* owned, const fs::path& file,
                            const LoadOptions& options) {
  text = core::without_byte_order_mark(text);
  settings::Diagnostics diagnostics;
  auto root = read_document(text, file, diagnostics);
  if (!root) fail(std::move(diagnostics), {{file.string(), std::string(text)}});
  if (ecs_import::is_task_definition(*root)) {
    settings::Diagnostics notices;
    auto converted = ecs_import::pipeline_of(*root, diagnostics, notices);
    check_unfilled(converted, diagnostics);
    auto pipeline = read_files({std::move(converted), text, file, file}, options, diagnostics);
    pipeline.reserve_gpus_together = true;
    if (options.notices) *options.notices = texts_of(notices, file);
    return pipeline;
  }
  ecs_import::refuse_template(*root, file.string(), text);
  check_unfilled(*root, diagnostics);
  if (owned) {
    std::string().swap(*owned);
    text = {};
  }
  return read_files({std::move(*root), text, file, file}, options, diagnostics);
}

}  // namespace

PipelineSpec parse(std::string_view text, const fs::path& file, const LoadOptions& options) {
  return parse_document(text, nullptr, file, options);
}

PipelineSpec read(const core::Value& root, const fs::path& file, const LoadOptions& options) {
  settings::Diagnostics diagnostics;
  return read_files({root, {}, file, {}}, options, diagnostics);
}

PipelineSpec load(const fs::path& file, const LoadOptions& options) {
  auto text = read_existing(file);
  // A pipe can be read only once.
  if (text.size() < large_text || !fs::is_regular_file(file)) return parse(text, file, options);
  try {
    return parse_document(text, &text, file, options);
  } catch (const core::InputError&) {  // Read again, for the lines that the errors show.
    return parse(read_existing(file), file, options);
  }
}

std::string import_task_definition(const fs::path& file, std::vector<std::string>& notices) {
  const auto text = read_existing(file);
  LoadOptions options;
  options.notices = &notices;
  parse(text, file, options);  // Throws InputError with all errors of the file.
  settings::Diagnostics diagnostics, ignored_notices;
  const auto root = read_document(text, file, diagnostics);
  if (!root || !ecs_import::is_task_definition(*root))
    throw core::InputError(
        "'" + file.string() + "' is not an ECS task definition: it has no 'containerDefinitions'",
        "a pipeline file needs no import: `pipe run FILE`");
  return to_yaml(ecs_import::pipeline_of(*root, diagnostics, ignored_notices));
}

}  // namespace pipeline::spec

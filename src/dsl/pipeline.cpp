#include "dsl/declaration.hpp"

#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "model/running_program.hpp"

namespace pipeline {

std::string_view to_string(Level level) {
  switch (level) {
    case Level::debug: return "debug";
    case Level::info: return "info";
    case Level::warning: return "warning";
    case Level::error: return "error";
  }
  return "info";
}

namespace detail {

std::string tidy_type(std::string_view name) {
  std::string tidy(name);
  const auto replace = [&](std::string_view what, std::string_view by) {
    for (auto at = tidy.find(what); at != tidy.npos; at = tidy.find(what, at + by.size()))
      tidy.replace(at, what.size(), by);
  };
  replace("std::__cxx11::basic_string<char>", "std::string");
  replace("std::filesystem::__cxx11::", "std::filesystem::");
  replace("pipeline::", "");
  return tidy;
}

StepDeclaration::StepDeclaration(std::unique_ptr<Declaration> declaration)
    : declaration_(std::move(declaration)) {}
StepDeclaration::StepDeclaration(const FunctionInfo& function, const StepOptions& options,
                                 std::source_location where)
    : declaration_(std::make_unique<Declaration>()) {
  auto& step = *declaration_;
  step.options = options;
  if (step.options.name.empty()) step.options.name = function.name;
  step.function = function.function;
  step.signature = tidy_type(function.signature);
  step.where = where;
  for (const auto& [name, extension] : function.results)
    step.results.push_back(
        {name.empty() ? "result" + std::to_string(step.results.size() + 1) : std::string(name),
         std::string(extension)});
}
StepDeclaration::StepDeclaration(const StepDeclaration& other)
    : declaration_(std::make_unique<Declaration>(*other.declaration_)) {}
StepDeclaration::StepDeclaration(StepDeclaration&& other) noexcept = default;
StepDeclaration& StepDeclaration::operator=(StepDeclaration other) noexcept {
  declaration_.swap(other.declaration_);
  return *this;
}
StepDeclaration::~StepDeclaration() = default;

void StepDeclaration::argument(Slot slot, const ArgumentType& type, bool is_axis) {
  auto& argument = declaration_->arguments.emplace_back();
  argument.slot = slot;
  argument.is_axis = is_axis;
  argument.type = tidy_type(type.name);
  argument.is_text = type.is_text;
}

void StepDeclaration::source(const AnyArtifact& artifact, const char* selector) {
  auto& argument = declaration_->arguments.back();
  argument.sources.push_back(artifact);
  argument.selector = selector;
}

void StepDeclaration::items(const AnyArtifact& artifact) {
  declaration_->arguments.back().items = artifact;
}

void StepDeclaration::value(const Json& value, std::string_view pipeline_parameter) {
  auto& argument = declaration_->arguments.back();
  if (argument.is_axis)
    argument.axis.push_back(value);
  else
    argument.value = value;
  argument.name = pipeline_parameter;
  argument.of_pipeline = !pipeline_parameter.empty();
}

void StepDeclaration::check(void (*function)(const nlohmann::json&)) {
  declaration_->arguments.back().check = function;
}
void StepDeclaration::entry(EntryFunction function) { declaration_->entry = function; }

const StepOptions& no_options() {
  static const StepOptions none;
  return none;
}

const PipelineOptions& no_pipeline_options() {
  static const PipelineOptions none;
  return none;
}

/// Begins the name of a placeholder; the name of a step cannot have a colon.
constexpr std::string_view round_prefix = "round:";

AnyArtifact taken_by_round(std::size_t repetition) {
  return {std::string(round_prefix) + std::to_string(repetition), "taken"};
}

std::optional<std::size_t> repetition_of(std::string_view reference) {
  if (!reference.starts_with(round_prefix)) return std::nullopt;
  std::size_t number = 0;
  for (const char c : reference.substr(round_prefix.size())) {
    if (c < '0' || c > '9') break;
    number = number * 10 + static_cast<std::size_t>(c - '0');
  }
  return number;
}

std::string address_of(const Declaration& step) {
  if (!step.function || !step.options.version.empty()) return {};
  return model::offset_in_program(step.function);
}

AnyArtifact result_of(const Declaration& step, std::size_t index) {
  return {step.options.name, step.outputs.at(index).name};
}
const std::string& name_of(const Declaration& step) { return step.options.name; }

}  // namespace detail

namespace {

/// Adds the names in `${outputs.NAME}`; `$${` is not a placeholder.
void add_outputs(std::string_view text, std::vector<Output>& outputs) {
  constexpr std::string_view begin = "${outputs.";
  for (auto at = text.find(begin); at != text.npos; at = text.find(begin, at + 1)) {
    if (at > 0 && text[at - 1] == '$') continue;
    const auto end = text.find('}', at);
    if (end == text.npos) return;
    std::string name(text.substr(at + begin.size(), end - at - begin.size()));
    if (std::ranges::find(outputs, name, &Output::name) == outputs.end())
      outputs.emplace_back(std::move(name));
  }
}

std::unique_ptr<detail::Declaration> declare_command(std::string_view name,
                                                     const StepOptions& options,
                                                     std::vector<std::string> words,
                                                     std::source_location where) {
  auto step = std::make_unique<detail::Declaration>();
  step->options = options;
  if (!options.name.empty() && options.name != name)
    step->problems.push_back("`name` is '" + options.name + "' in the options");
  step->options.name = name;
  step->words = std::move(words);
  step->where = where;
  for (const auto& word : step->words) add_outputs(word, step->options.outputs);
  return step;
}

}  // namespace

CommandStep command(std::string_view name, std::vector<std::string> words,
                    const StepOptions& options, std::source_location where) {
  return CommandStep(declare_command(name, options, std::move(words), where));
}

CommandStep shell(std::string_view name, std::string_view line, const StepOptions& options,
                  std::source_location where) {
  auto step = declare_command(name, options, {std::string(line)}, where);
  step->shell = true;
  return CommandStep(std::move(step));
}

CommandStep script(std::string_view name, std::vector<std::string> interpreter,
                   std::string_view text, const StepOptions& options, std::source_location where) {
  auto step = declare_command(name, options, std::move(interpreter), where);
  const auto program = step->words.empty()
                           ? std::string()
                           : std::filesystem::path(step->words[0]).filename().string();
  const char* extension = program.starts_with("python") ? ".py"
                          : program.ends_with("sh")     ? ".sh"
                          : program == "Rscript"        ? ".R"
                                                        : "";
  step->script_file = step->options.name + extension;
  if (text.starts_with('\n'))
    text.remove_prefix(1);  // The line end after the opening of a raw literal.
  step->script = text;
  step->words.push_back(step->script_file);
  return CommandStep(std::move(step));
}

CommandStep notebook(std::string_view name, std::string_view file, const StepOptions& options,
                     std::source_location where) {
  auto step = declare_command(name, options, {}, where);
  step->notebook = file;
  auto& outputs = step->options.outputs;
  if (std::ranges::find(outputs, "notebook", &Output::name) == outputs.end())
    outputs.emplace_back("notebook", std::filesystem::path(file).filename().string());
  return CommandStep(std::move(step));
}

When::When(std::string_view step, std::string_view output)
    : expression("${" + std::string(step) + "." + std::string(output) + "}") {}

NamedInput::NamedInput(std::string input, const AnyArtifact& artifact, std::string_view selector)
    : name(std::move(input)),
      reference(artifact.step + std::string(selector) + "." + artifact.output),
      least(artifact.least) {}

AnyArtifact CommandHandle::output_named(std::string_view output) const {
  if (std::ranges::find(outputs, output) != outputs.end()) return {name, std::string(output)};
  std::string list;
  for (const auto& each : outputs) list += (list.empty() ? "" : ", ") + each;
  throw std::out_of_range("command '" + name + "' makes no output '" + std::string(output) +
                          "'; it makes: " + (list.empty() ? "none" : list));
}

struct Pipeline::Content {
  std::string name;
  PipelineOptions options;
  std::vector<detail::Declaration> steps;
  std::vector<detail::Repetition> repetitions;
  std::optional<std::size_t> open;  ///< Index of the repetition whose steps are being added.

  /// Stores a vector as a JSON list, whose items a matrix can take, instead of a NumPy array.
  void store_as_list(const AnyArtifact& artifact) {
    constexpr std::string_view array = ".npy";
    for (auto& step : steps) {
      if (step.options.name != artifact.step || !step.entry) continue;
      for (auto& output : step.outputs)
        if (output.name == artifact.output && output.file_name.ends_with(array))
          output.file_name.replace(output.file_name.size() - array.size(), array.size(), ".json");
    }
  }
};

Pipeline::Pipeline(std::string_view name, const PipelineOptions& options)
    : content_(std::make_unique<Content>(Content{std::string(name), options, {}, {}, {}})) {}
Pipeline::Pipeline(const Pipeline& other) : content_(std::make_unique<Content>(*other.content_)) {}
Pipeline::Pipeline(Pipeline&& other) noexcept = default;
Pipeline& Pipeline::operator=(Pipeline other) noexcept {
  content_.swap(other.content_);
  return *this;
}
Pipeline::~Pipeline() = default;

const std::string& Pipeline::name() const { return content_->name; }
const PipelineOptions& Pipeline::options() const { return content_->options; }
const std::vector<detail::Declaration>& Pipeline::steps() const { return content_->steps; }

const std::vector<detail::Repetition>& Pipeline::repetitions() const {
  return content_->repetitions;
}

AnyArtifact Pipeline::begin_rounds(const RepeatOptions& options, const AnyArtifact& first,
                                   std::source_location where) {
  auto& all = content_->repetitions;
  if (content_->open) throw std::logic_error("pipeline: repeat() in the body of another repeat()");
  content_->open = all.size();
  all.push_back({options, first, {}, where});
  return detail::taken_by_round(*content_->open);
}

AnyArtifact Pipeline::end_rounds(const AnyArtifact& next, const When& until) {
  auto& repetition = content_->repetitions.at(content_->open.value());
  content_->open.reset();
  repetition.next = next;
  if (!until.expression.empty()) repetition.options.until = until;
  return next;
}

namespace {

/// Reports values of axes that the function cannot take. Other values are checked once the
/// parameters are known, which may replace them.
void refuse_values_of_axes(detail::Declaration& function) {
  for (const auto& argument : function.arguments) {
    if (!argument.is_axis || !argument.check) continue;
    for (const auto& value : argument.axis) try {
        argument.check(*value);
      } catch (const JsonError& error) {
        function.problems.push_back("'" + argument.name + "' is of type " + argument.type + ": " +
                                    error.what());
      }
  }
}

/// Reports options that would have no effect on a function step.
void refuse_options_of_commands(detail::Declaration& function) {
  const auto& options = function.options;
  const auto refuse = [&](bool is_given, std::string_view name) {
    if (is_given)
      function.problems.push_back('`' + std::string(name) + "` is for commands; a function gets " +
                                  "values as arguments of add(), and several by map()");
  };
  refuse(!options.parameters.empty(), "parameters");
  refuse(options.all_parameters, "all_parameters");
  refuse(!options.shell.empty(), "shell");
  refuse(!options.matrix->is_null(), "matrix");
}

}  // namespace

/// Names the arguments and outputs of a declared step, checks them, and adds the step.
const detail::Declaration& Pipeline::put(detail::StepDeclaration declared) {
  using detail::Slot;
  auto& step = *declared.declaration_;
  auto& problems = step.problems;
  const auto& names = step.options.arguments;
  std::size_t number = 0;
  for (auto& argument : step.arguments) {
    if (argument.slot == Slot::context) continue;
    const auto index = number++;
    if (argument.of_pipeline) continue;
    argument.name = index < names.size() ? names[index] : "arg" + std::to_string(index + 1);
  }
  if (!step.entry) {
    if (!names.empty())
      problems.push_back("`arguments` is for functions; a command has `${params.X}` and `inputs`");
  } else {
    refuse_options_of_commands(step);
    refuse_values_of_axes(step);
    if (!names.empty() && names.size() != number)
      problems.push_back("`arguments` names " + std::to_string(names.size()) +
                         " arguments, but the function takes " + std::to_string(number));
  }
  for (std::size_t i = 0; i < step.arguments.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (!step.arguments[i].name.empty() && step.arguments[i].name == step.arguments[k].name)
        problems.push_back("two arguments are called '" + step.arguments[i].name + "'");

  if (!step.entry) {
    step.outputs = step.options.outputs;
  } else {
    const auto& given = step.options.outputs;
    if (!given.empty() && given.size() != step.results.size())
      problems.push_back("`outputs` names " + std::to_string(given.size()) +
                         " results, but the function has " + std::to_string(step.results.size()));
    for (std::size_t i = 0; i < step.results.size(); ++i) {
      const auto& [name, extension] = step.results[i];
      Output output = i < given.size() ? given[i] : Output(name);
      if (output.file_name == output.name) output.file_name += extension;
      step.outputs.push_back(std::move(output));
    }
  }
  step.repeat = content_->open;
  for (const auto& argument : step.arguments) {
    if (argument.items) content_->store_as_list(*argument.items);
    const bool is_single = !argument.items && argument.slot != Slot::gathered;
    for (const auto& source : argument.sources)
      if (!is_single && detail::repetition_of(source.step))
        problems.push_back("'" + argument.name +
                           "' gathers the artifact that a round takes: add() a step that takes "
                           "this artifact alone");
    if (argument.items && detail::repetition_of(argument.items->step))
      problems.push_back(
          "map() iterates over the artifact that a round takes: let a step of the round return the "
          "vector");
  }
  return content_->steps.emplace_back(std::move(step));
}

CommandHandle Pipeline::add(CommandStep step, const std::vector<NamedInput>& inputs) {
  step.declaration_->inputs = inputs;
  const auto& added = put(std::move(step));
  CommandHandle handle;
  handle.name = added.options.name;
  for (const auto& output : added.outputs) handle.outputs.push_back(output.name);
  return handle;
}

}  // namespace pipeline

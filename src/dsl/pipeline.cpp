#include <pipeline/pipeline.hpp>

#include <algorithm>
#include <filesystem>

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

}  // namespace detail

namespace {

/// The names in `${outputs.NAME}`; `$${` is no hole.
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

CommandStep made(std::string name, StepOptions options, std::vector<std::string> words,
                 std::source_location where) {
  options.name = std::move(name);
  CommandStep step;
  step.options = std::move(options);
  step.words = std::move(words);
  step.where = where;
  for (const auto& word : step.words) add_outputs(word, step.options.outputs);
  return step;
}

}  // namespace

CommandStep command(std::string name, std::vector<std::string> words, StepOptions options,
                    std::source_location where) {
  return made(std::move(name), std::move(options), std::move(words), where);
}

CommandStep shell(std::string name, std::string line, StepOptions options,
                  std::source_location where) {
  auto step = made(std::move(name), std::move(options), {std::move(line)}, where);
  step.shell = true;
  return step;
}

CommandStep script(std::string name, std::vector<std::string> interpreter, std::string text,
                   StepOptions options, std::source_location where) {
  auto step = made(std::move(name), std::move(options), std::move(interpreter), where);
  const auto program =
      step.words.empty() ? std::string() : std::filesystem::path(step.words[0]).filename().string();
  const char* extension = program.starts_with("python") ? ".py"
                          : program.ends_with("sh")     ? ".sh"
                          : program == "Rscript"        ? ".R"
                                                        : "";
  step.script_file = step.options.name + extension;
  step.script = std::move(text);
  if (!step.script.empty() && step.script[0] == '\n') step.script.erase(0, 1);  // of a raw literal
  step.words.push_back(step.script_file);
  return step;
}

void CommandHandle::check(const std::string& output) const {
  if (std::ranges::find(outputs, output) != outputs.end()) return;
  std::string list;
  for (const auto& each : outputs) list += (list.empty() ? "" : ", ") + each;
  throw std::out_of_range("command '" + name + "' makes no output '" + output +
                          "'; it makes: " + (list.empty() ? "none" : list));
}

Pipeline::Pipeline(std::string name, PipelineOptions options)
    : name_(std::move(name)), options_(std::move(options)) {}
Pipeline::Pipeline(std::string name, DockerSettings docker) : name_(std::move(name)) {
  options_.docker = std::move(docker);
}

const detail::Declaration& Pipeline::put(detail::Declaration step) {
  using detail::Slot;
  auto& problems = step.problems;
  const auto& names = step.options.arguments;
  std::size_t number = 0;
  for (auto& argument : step.arguments) {
    if (argument.slot == Slot::context) continue;
    const auto index = number++;
    if (argument.of_pipeline) continue;
    argument.name = index < names.size() ? names[index] : "arg" + std::to_string(index + 1);
  }
  if (!names.empty() && names.size() != number)
    problems.push_back("`arguments` names " + std::to_string(names.size()) +
                       " arguments, but the function takes " + std::to_string(number));
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
  steps_.push_back(std::move(step));
  return steps_.back();
}

CommandHandle Pipeline::add(CommandStep step, std::vector<NamedInput> inputs) {
  detail::Declaration declaration;
  declaration.options = std::move(step.options);
  declaration.words = std::move(step.words);
  declaration.shell = step.shell;
  declaration.script = std::move(step.script);
  declaration.script_file = std::move(step.script_file);
  declaration.inputs = std::move(inputs);
  declaration.where = step.where;
  const auto& added = put(std::move(declaration));
  CommandHandle handle;
  handle.name = added.options.name;
  for (const auto& output : added.outputs) handle.outputs.push_back(output.name);
  return handle;
}

}  // namespace pipeline

#include "orchestrators/layout.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/error.hpp"
#include "core/identifier.hpp"
#include "core/inline_script.hpp"
#include "core/json_member.hpp"
#include "core/shell_prelude.hpp"
#include "core/text.hpp"
#include "core/user_environment.hpp"
#include "orchestrators/nodes.hpp"
#include "orchestrators/orchestrator.hpp"
#include "orchestrators/shell_line.hpp"

namespace pipeline::orchestrators {
namespace {

/// Returns the text that the user wrote for the number at `path` (`KEY.0.KEY`) of the parameter,
/// because JSON does not keep `1e3` or `0.10`; null for other values.
const std::string* written_at(const Json& parameter, const std::string& path) {
  if (!parameter.written) return nullptr;
  const auto text = parameter.written->find(path);
  return text == parameter.written->end() ? nullptr : &text->second;
}

/// Returns JSON in which numbers have the digits that were written.
/// @param member the value at `path` of the parameter
std::string json_of(const Json& parameter, const nlohmann::json& member, const std::string& path) {
  if (const auto* text = written_at(parameter, path);
      text && !core::parse_json(*text).is_discarded())
    return *text;
  if (!member.is_structured() || !parameter.written) return member.dump();
  std::string items;
  for (const auto& [key, item] : member.items())
    items += (items.empty() ? "" : ",") +
             (member.is_object() ? nlohmann::json(key).dump() + ":" : "") +
             json_of(parameter, item, path.empty() ? key : path + "." + key);
  return member.is_array() ? "[" + items + "]" : "{" + items + "}";
}

/// Returns strings unchanged, numbers as written, and other values as JSON: `true`, `null`,
/// `["a","b"]`.
std::string text_of(const Json& parameter, const nlohmann::json& member, const std::string& path) {
  if (const auto* text = written_at(parameter, path)) return *text;
  return member.is_string() ? member.get<std::string>() : json_of(parameter, member, path);
}

/// Returns the text of parameter `X`, or of `X.KEY.0` inside a list or map; nothing if the step has
/// no such parameter.
std::optional<std::string> parameter(const StepSpec& step, const std::string& name) {
  const auto names = core::split(name, '.');
  const auto found = step.parameters.find(std::string(names[0]));
  const nlohmann::json* value = found == step.parameters.end() ? nullptr : &*found->second;
  for (std::size_t i = 1; value && i < names.size(); ++i) value = core::member(*value, names[i]);
  if (!value) return std::nullopt;
  return text_of(found->second, *value, name.substr(std::min(names[0].size() + 1, name.size())));
}

/// Returns the item with this name; throws EnvironmentError if there is none.
/// @param what the kind of the items, for the message
template <class Items>
auto& named(const Items& items, const std::string& name, const AttemptSpec& attempt,
            const char* what) {
  for (auto& item : items)
    if (item.name == name) return item;
  throw core::EnvironmentError("step '" + attempt.step.name + "' has no " + what + " '" + name +
                               "', which its command names");
}

std::string value_of(const Template::Reference& reference, const AttemptSpec& attempt,
                     const Layout& layout) {
  switch (reference.placeholder) {
    case Template::Placeholder::input:
      return path_of(named(attempt.inputs, reference.name, attempt, "input"), layout);
    case Template::Placeholder::output:
      return path_of(named(attempt.output_names, reference.name, attempt, "output"), layout);
    case Template::Placeholder::parameter:
      if (auto value = parameter(attempt.step, reference.name)) return *value;
      throw core::EnvironmentError("step '" + attempt.step.name + "' has no parameter '" +
                                   reference.name + "', which its command names");
    case Template::Placeholder::run_id: return attempt.run_id;
    case Template::Placeholder::step_name: return attempt.step.name;
    case Template::Placeholder::checkpoint: return layout.checkpoint;
    case Template::Placeholder::node_rank:
      if (attempt.process) return node_text(*attempt.process);
      return std::to_string(attempt.shell ? attempt.shell->node : 0);
    case Template::Placeholder::node_count:
      return std::to_string(std::max<unsigned>(1, attempt.step.nodes.count));
    case Template::Placeholder::environment:
      if (auto found = attempt.environment.find(reference.name); found != attempt.environment.end())
        return found->second;
      throw core::EnvironmentError("the command of step '" + attempt.step.name + "' uses ${env." +
                                       reference.name + "}, but " + reference.name + " is not set",
                                   {"set it for this run: " + reference.name + "=... pipe run ...",
                                    "or give it a value under `environment` of the step"});
  }
  return {};
}

/// Returns the text with its placeholders filled in, unquoted.
std::string fill(const Template& text, const AttemptSpec& attempt, const Layout& layout) {
  std::string result;
  for (const auto& part : text.parts) {
    if (const auto* literal = std::get_if<std::string>(&part))
      result += *literal;
    else
      result += value_of(std::get<Template::Reference>(part), attempt, layout);
  }
  return result;
}

/// Debian's dash has no pipefail and ends a script that sets it, so a subshell tests it first.
constexpr const char* set_pipefail = "(set -o pipefail) 2>/dev/null && set -o pipefail; ";
constexpr const char* warn_of_pipe =
    "(set -o pipefail) 2>/dev/null || echo 'pipe: there is no bash, and this sh has no pipefail: "
    "only the last command of a pipe can fail the step' >&2; ";
/// $0: the step's line; $1: the prelude that bash runs before the line; $2: the prelude for sh.
constexpr const char* choose_shell =
    "command -v bash >/dev/null 2>&1 && exec bash -e -o pipefail -c \"$1$0\"; "
    "exec sh -e -c \"$2$0\"";

const std::vector<std::string> bash_words{"bash", "-e", "-o", "pipefail", "-c"},
    sh_words{"sh", "-e", "-c"};

/// Returns the line with its placeholders filled in, quoted for the shell.
std::string shell_line(const Template& text, const AttemptSpec& attempt, const Layout& layout) {
  ShellLine line;
  for (const auto& part : text.parts) {
    if (const auto* literal = std::get_if<std::string>(&part))
      line.add_text(*literal);
    else
      line.add_value(value_of(std::get<Template::Reference>(part), attempt, layout));
  }
  return line.finish();
}

/// Returns the text, empty if it has a placeholder.
std::string_view literal_of(const Template& text) {
  return text.parts.only_text().value_or(std::string_view());
}

/// Returns the indices of the arguments that a shell reads as its script, as in `[sh, -c, TEXT]`
/// and `[timeout, "9", bash, -c, TEXT]`. Values in them are quoted as in a command that is a text.
std::vector<bool> scripts_among(const SharedList<Template>& arguments) {
  std::vector<bool> are_scripts(arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!core::is_shell(literal_of(arguments[i]))) continue;
    if (const auto script = core::inline_script(
            i, arguments.size(), [&](std::size_t at) { return literal_of(arguments[at]); }))
      are_scripts[*script] = true;
  }
  return are_scripts;
}

/// The variables that limit the threads of common libraries, which otherwise start a thread for
/// each CPU of the machine.
constexpr std::array thread_variables{"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS",
                                      "MKL_NUM_THREADS", "RAYON_NUM_THREADS",
                                      "GOMAXPROCS",      "PYTHON_CPU_COUNT"};

/// Adds the step's limits of memory and CPUs as variables.
/// @param image variables that the image sets, which are not changed
void add_limits(const ResourceSettings& resources, const StringMap& image, StringMap& variables) {
  if (resources.memory) variables["PIPE_MEMORY"] = std::to_string(*resources.memory);
  if (!resources.cpu_count) return;
  auto& cpus = variables["PIPE_CPUS"] = nlohmann::json(*resources.cpu_count).dump();
  if (cpus.ends_with(".0")) cpus.resize(cpus.size() - 2);
  const auto threads = std::to_string(std::max(1L, std::lround(*resources.cpu_count)));
  for (const auto* name : thread_variables)
    if (!image.contains(name)) variables[name] = threads;
}

std::string quoted(const std::vector<std::string>& words) {
  std::string line;
  for (const auto& word : words) line += (line.empty() ? "" : " ") + core::shell_quote(word);
  return line;
}

}  // namespace

std::string extension_of(const std::string& file_name) {
  std::filesystem::path name(file_name);
  auto extension = name.extension().string();
  if (name.stem().extension() == ".tar") extension = ".tar" + extension;
  return extension;
}

std::string path_of(const AttemptInput& input, const Layout& layout) {
  return layout.inputs + "/" + input.name + extension_of(input.file_name);
}

std::string path_of(const AttemptOutput& output, const Layout& layout) {
  return layout.outputs + "/" + output.file_name;
}

std::vector<std::string> command_of(const AttemptSpec& attempt, const Layout& layout) {
  const Command& command = attempt.step.command;
  if (command.shell) {
    std::vector<std::string> words(command.interpreter.begin(), command.interpreter.end());
    const auto line = shell_line(command.arguments.at(0), attempt, layout);
    std::string prelude_of_sh = has_pipe(command) ? set_pipefail : "";
    if (words.empty()) {
      if (has_pipe(command)) prelude_of_sh.insert(0, warn_of_pipe);
      prelude_of_sh.insert(0, core::sh_prelude);
      if (!layout.has_bash)
        return {"sh", "-c", choose_shell, line, std::string(core::bash_prelude), prelude_of_sh};
      words = *layout.has_bash ? bash_words : sh_words;
    }
    words.push_back((words == bash_words ? std::string(core::bash_prelude)
                     : words == sh_words ? prelude_of_sh
                                         : std::string()) +
                    line);
    return words;
  }
  std::vector<std::string> arguments;
  if (attempt.step.program) arguments = layout.program;
  const auto are_scripts = scripts_among(command.arguments);
  for (std::size_t i = 0; i < command.arguments.size(); ++i)
    arguments.push_back(
        (are_scripts[i] ? shell_line : fill)(command.arguments[i], attempt, layout));
  if (const auto& program = attempt.step.program; program && !program->address.empty()) {
    arguments.push_back("--pipe-function");
    arguments.push_back(program->address);
  }
  return arguments;
}

bool has_pipe(const Command& command) {
  if (!command.shell) return false;
  ShellLine line;
  for (const auto& part : command.arguments.at(0).parts) {
    if (const auto* literal = std::get_if<std::string>(&part))
      line.add_text(*literal);
    else
      line.add_text("x");
  }
  return line.has_pipe();
}

bool sets_variable(const StepSpec& step, const std::string& name) {
  const auto& docker = step.settings->docker;
  return step.environment.contains(name) || docker.runtime_environment.contains(name) ||
         docker.environment.contains(name);
}

StringMap variables_of(const AttemptSpec& attempt, const Layout& layout) {
  StringMap variables{{"PIPE_RUN_ID", attempt.run_id},
                      {"PIPE_STEP_NAME", attempt.step.name},
                      {"PIPE_PIPELINE", attempt.pipeline},
                      {"PIPE_ATTEMPT", std::to_string(attempt.number)}};
  // Python prints its stack at the signal that ends a stalled step (engine/attempt/python_stacks).
  constexpr const char* faulthandler = "PYTHONFAULTHANDLER";
  const auto& image_variables = attempt.step.settings->docker.environment;
  if (attempt.step.stalled_after && !image_variables.contains(faulthandler))
    variables[faulthandler] = "1";
  if (!layout.scratch.empty()) {
    variables["PIPE_SCRATCH"] = layout.scratch;
    variables["PIPE_FAILURE_FILE"] = layout.scratch + "/" + std::string(failure_file_name);
  }
  if (!attempt.checkpoint.empty()) variables["PIPE_CHECKPOINT"] = layout.checkpoint;
  add_limits(attempt.step.settings->resources, image_variables, variables);
  for (auto& input : attempt.inputs)
    variables[core::variable_name("PIPE_INPUT_", input.name)] = path_of(input, layout);
  for (auto& output : attempt.output_names)
    variables[core::variable_name("PIPE_OUTPUT_", output.name)] = path_of(output, layout);
  for (auto& [name, value] : attempt.step.parameters) {
    const auto text = text_of(value, *value, {});
    variables[core::variable_name("PIPE_PARAM_", name)] = text;
    variables[core::same_case_variable_name("PIPE_PARAM_", name)] = text;
  }
  if (attempt.process) variables.merge(node_variables(attempt));
  if (attempt.shell) {
    if (!attempt.step.program) variables["PIPE_COMMAND"] = quoted(command_of(attempt, layout));
    if (const auto kind = core::variable("TERM"); attempt.shell->has_terminal && !kind.empty())
      variables["TERM"] = kind;
  }
  for (auto* later :
       {&attempt.environment, &attempt.step.settings->docker.runtime_environment, &attempt.secrets})
    for (auto& [name, value] : *later) variables[name] = value;
  return variables;
}

}  // namespace pipeline::orchestrators

#include "driver/command_checks.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/file.hpp"
#include "core/identifier.hpp"
#include "core/inline_script.hpp"
#include "core/quantity.hpp"
#include "core/text.hpp"
#include "model/findings.hpp"
#include "orchestrators/orchestrator.hpp"
#include "settings/settings.hpp"

namespace pipeline::driver {
namespace {

namespace fs = std::filesystem;

/// Names of images, and parts of tags, whose `sh` is busybox or bash. In Debian and Ubuntu it is
/// dash, which has no pipefail up to 0.5.12.
constexpr std::array images_with_pipefail{"alpine",    "busybox", "fedora",    "rocky",
                                          "almalinux", "centos",  "ubi",       "amazonlinux",
                                          "suse",      "oracle",  "archlinux", "bash"};

/// Returns true if the `sh` of the step's image is likely to have pipefail.
bool has_pipefail(const DockerSettings& settings) {
  const auto image = settings.parent_image.value_or("");
  return std::ranges::any_of(images_with_pipefail,
                             [&](const char* name) { return image.find(name) != image.npos; });
}

/// Returns true if the value is an item of a list in the parameter: `matrix: {x: ${params.X[*]}}`.
bool has_item(const nlohmann::json& parameter, const nlohmann::json& value) {
  if (!parameter.is_structured()) return false;
  const auto* text = value.get_ptr<const std::string*>();
  return std::ranges::any_of(parameter, [&](const nlohmann::json& item) {
    return (parameter.is_array() && (item == value || (text && item.dump() == *text))) ||
           has_item(item, value);
  });
}

/// Adds the names of the parameters that the condition depends on to `taken`.
void take_parameters(const Condition& condition, std::set<std::string>& taken) {
  for (const auto& [name, value] : condition.parameters)
    taken.emplace(core::split(name, '.').at(1));  // `params.X`, `params.X.MEMBER`
}

/// Returns true for a small file that stands for a file which git does not store itself.
bool is_pointer(const fs::path& file) {
  constexpr std::size_t max_pointer = 512;
  std::error_code error;
  if (fs::file_size(file, error) > max_pointer || error) return false;
  const auto text = core::read_untrusted_file(file, max_pointer).value_or("");
  return text.starts_with("version https://git-lfs.github.com/spec/") ||
         text.starts_with("/annex/objects/");
}

/// Returns the first file for which is_pointer() is true.
std::optional<fs::path> first_pointer(const std::vector<fs::path>& files) {
  const auto pointer = std::ranges::find_if(files, is_pointer);
  return pointer == files.end() ? std::nullopt : std::optional(*pointer);
}

/// The size of a set of code files, and the first of them that is_pointer().
struct CodeFacts {
  Bytes total = 0;
  const spec::CodeFile* largest = nullptr;  ///< Null if no file can be read.
  Bytes largest_bytes = 0;
  std::optional<fs::path> pointer = {};
};

CodeFacts facts_of(const spec::CodeSet& code) {
  CodeFacts facts;
  std::vector<fs::path> files;
  for (const auto& file : code.files) {
    std::error_code error;
    const auto bytes = fs::file_size(file.source, error);
    if (error) continue;
    facts.total += bytes;
    if (!facts.largest || bytes > facts.largest_bytes) {
      facts.largest = &file;
      facts.largest_bytes = bytes;
    }
    files.push_back(file.source);
  }
  facts.pointer = first_pointer(files);
  return facts;
}

/// Adds the file, or the first files in the folder, to `files`.
void add_files(const fs::path& path, std::vector<fs::path>& files) {
  constexpr std::size_t max_files = 200;
  std::error_code error;
  if (!fs::is_directory(path, error)) return files.push_back(path);
  std::size_t count = 0;
  for (fs::recursive_directory_iterator entries(path, error), end;
       !error && entries != end && count < max_files; entries.increment(error))
    if (std::error_code unreadable; entries->is_regular_file(unreadable)) {
      files.push_back(entries->path());
      ++count;
    }
}

/// Returns true for `NAME=value`.
bool is_assignment(std::string_view word) {
  const auto equals = word.find('=');
  return equals != word.npos && core::is_variable_name(word.substr(0, equals));
}
/// Returns true for `$NAME`.
bool is_variable(std::string_view word) {
  return word.starts_with('$') && core::is_variable_name(word.substr(1));
}

/// Returns the word of a list that means something to a shell only; nothing if there is none.
std::optional<std::string_view> shell_sign(const Command& command) {
  static constexpr std::array signs{">", ">>", "<", "|", "&&", "||", "2>&1", "2>", "&", ";"};
  // Programs that take such words as arguments.
  static constexpr std::array takes_signs{"expr", "test", "[", "find", "envsubst"};
  if (command.shell || command.arguments.empty()) return std::nullopt;
  const auto program = command.arguments[0].parts.only_text();
  if (program && (std::ranges::count(takes_signs, *program) || core::is_shell(*program)))
    return std::nullopt;
  if (program && is_assignment(*program)) return program;
  for (const auto& word : command.arguments)
    if (const auto text = word.parts.only_text();
        text && (std::ranges::count(signs, *text) || is_variable(*text)))
      return text;
  return std::nullopt;
}

/// Returns true if both steps are instances of one step, for which findings are the same.
bool is_sibling(const StepSpec* before, const StepSpec& step) {
  return before && before->instance && step.instance && *before->instance->of == *step.instance->of;
}

/// Linux: an argument, and a variable with its name, have at most 128 KiB with the final zero.
constexpr std::size_t max_argument = 128 << 10;
/// Linux: with the usual limit of the stack (8 MiB), all arguments and variables together have at
/// most 2 MiB; some of it is left for other variables.
constexpr std::size_t max_arguments = 2000 << 10;
/// Engines refuse smaller limits.
constexpr Bytes min_memory = 6 << 20;
constexpr Bytes min_shared_memory = 4 << 10;

/// Returns the bytes of the value in an argument, where a text has no quotes. Numbers and booleans
/// are short, and count as 0.
std::size_t size_of(const nlohmann::json& value) {
  const auto* text = value.get_ptr<const std::string*>();
  return text ? text->size() : value.is_structured() ? value.dump().size() : 0;
}

/// Returns the bytes of an argument with the step's parameters filled in.
std::size_t size_of(const Template& text, const StepSpec& step) {
  std::size_t size = 0;
  for (const auto& part : text.parts) {
    if (const auto* literal = std::get_if<std::string>(&part)) size += literal->size();
    const auto* reference = std::get_if<Template::Reference>(&part);
    if (!reference || reference->placeholder != Template::Placeholder::parameter) continue;
    const auto found = step.parameters.find(reference->name);
    if (found != step.parameters.end()) size += size_of(*found->second);
  }
  return size;
}

/// Returns the variables whose values are known before the step starts.
StringMap known_variables(const StepSpec& step) {
  StringMap variables = step.settings->docker.runtime_environment;
  const auto& of_image = step.settings->docker.environment;
  variables.insert(of_image.begin(), of_image.end());
  for (const auto& [name, value] : step.environment)
    if (value) variables.insert_or_assign(name, *value);
  return variables;
}

/// Names the part of the step that is too long for a program's arguments or variables; returns an
/// empty text if none is.
std::string too_long_part(const StepSpec& step) {
  std::size_t all = 0;
  for (const auto& [name, value] : known_variables(step)) {
    const auto size = name.size() + 1 + value.size();
    all += size;
    if (size >= max_argument) return "the variable '" + name + "' with " + core::format_bytes(size);
  }
  for (const auto& argument : step.command.arguments) {
    const auto size = size_of(argument, step);
    all += size;
    if (size >= max_argument) return "a command with " + core::format_bytes(size) + " in one text";
  }
  for (const auto& [name, value] : step.parameters) {
    const auto size = std::string_view("PIPE_PARAM_=").size() + name.size() + size_of(*value);
    all += 2 * size;  // One variable has the name as it is, another one in capitals.
    if (size >= max_argument)
      return "the parameter '" + name + "' with " + core::format_bytes(size);
  }
  return all < max_arguments
             ? ""
             : "a command, parameters and variables with " + core::format_bytes(all) + " together";
}

}  // namespace

std::vector<core::Diagnostic> check_sizes(const std::vector<const StepSpec*>& steps) {
  model::Findings found;
  for (const auto* step : steps) {
    if (const auto part = too_long_part(*step); !part.empty())
      found.add({&step, 1}, {"too-long",
                             "has " + part +
                                 "; a program starts with at most 128 KiB in an argument or "
                                 "variable, and 2 MiB in all",
                             {},
                             {},
                             "write the value into a file, and name that under `inputs:`"});
    const auto& resources = step->settings->resources;
    for (const auto& [key, size, min] :
         {std::tuple{"memory", resources.memory, min_memory},
          std::tuple{"shm_size", resources.shm_size, min_shared_memory}})
      if (size && *size < min)
        found.add({&step, 1},
                  {"small-memory",
                   "has `" + std::string(key) + ": " + std::to_string(*size) + "`, which is " +
                       core::format_bytes(*size) + ": no program runs with so little",
                   {},
                   {},
                   "write a unit: `" + std::string(key) + ": " + std::to_string(*size) + "MiB`",
                   core::Severity::warning});
  }
  return found.all();
}

std::vector<core::Diagnostic> check_builds(const std::vector<const StepSpec*>& steps) {
  model::Findings found;
  const auto has_dockerfile = [](const StepSpec* step) {
    return step->settings->docker.dockerfile.has_value();
  };
  // Beside steps with a Dockerfile, the pipeline's value may be theirs.
  if (std::ranges::any_of(steps, has_dockerfile)) return {};
  for (const auto* step : steps) {
    const auto& docker = step->settings->docker;
    const auto warn = [&](const char* name) {
      found.add({&step, 1},
                {"unused-setting",
                 std::string("has `") + name + "`, which only the build of a `dockerfile` uses",
                 {},
                 {},
                 "name the Dockerfile, as in `dockerfile: Dockerfile`, or remove it",
                 core::Severity::warning});
    };
    if (docker.build_context_root) warn("build_context_root");
    if (!settings::to_json(docker).value("parent_image_build_config", nlohmann::json()).empty())
      warn("parent_image_build_config");
  }
  return found.all();
}

std::vector<core::Diagnostic> check_scripts(const std::vector<const StepSpec*>& steps,
                                            spec::CodeResolver& resolver) {
  model::Findings found;
  const StepSpec* before = nullptr;
  for (const auto* step : steps) {
    if (is_sibling(std::exchange(before, step), *step)) continue;
    if (const auto sign = shell_sign(step->command))
      found.add({&step, 1},
                {"no-shell",
                 "the program gets `" + std::string(*sign) +
                     "` as an argument, because a command that is a list runs without a shell",
                 {},
                 {},
                 "write the command as one text, as in `command: echo $HOME > file`; a list may "
                 "have ${env.NAME}, and `environment:` sets variables",
                 core::Severity::warning});
    for (const auto& script : resolver.missing_scripts(*step))
      found.add({&step, 1}, {"missing-file",
                             "there is no file '" + script + "' in the pipeline's folder",
                             {},
                             {},
                             core::did_you_mean(script, resolver.all_files()),
                             core::Severity::warning});
  }
  return found.all();
}

std::vector<core::Diagnostic> check_files(const std::vector<const StepSpec*>& steps,
                                          spec::CodeResolver& resolver) {
  constexpr Bytes large_code = Bytes{1} << 30;
  model::Findings found;
  std::unordered_map<const spec::CodeSet*, CodeFacts> known;  // Steps share sets.
  const StepSpec* before = nullptr;
  for (const auto* step : steps) {
    if (is_sibling(std::exchange(before, step), *step)) continue;
    const auto warn = [&](const char* code, std::string message, std::string suggestion) {
      found.add({&step, 1},
                {code, std::move(message), {}, {}, std::move(suggestion), core::Severity::warning});
    };
    const auto& set = resolver.code_of(*step);
    const auto [entry, is_new] = known.try_emplace(&set);
    if (is_new) entry->second = facts_of(set);
    const CodeFacts& code = entry->second;
    if (code.total >= large_code)
      warn("large-code",
           "the code has " + core::format_bytes(code.total) + ", '" + code.largest->relative_path +
               "' " + core::format_bytes(code.largest_bytes) + " of that",
           "data belongs under `inputs`; `code:` lists the files that are code");
    auto pointer = code.pointer;
    std::vector<fs::path> files;
    for (const auto& input : step->inputs)
      if (input.data && !input.data->path.empty()) add_files(input.data->path, files);
    if (!pointer) pointer = first_pointer(files);
    if (pointer)
      warn("pointer-file",
           "'" + pointer->filename().string() +
               "' is a pointer of Git LFS or git-annex: the content of the file is not here",
           "`git lfs pull`, or `git annex get`, fetches the content");
  }
  return found.all();
}

std::vector<core::Diagnostic> check_commands(const PipelineSpec& pipeline,
                                             spec::CodeResolver& resolver) {
  std::vector<const StepSpec*> steps;
  for (const auto& step : pipeline.steps) steps.push_back(&step);
  auto all = check_scripts(steps, resolver);
  std::ranges::move(check_sizes(steps), std::back_inserter(all));
  std::ranges::move(check_builds(steps), std::back_inserter(all));
  model::Findings found;
  std::set<std::string> taken(pipeline.filled_parameters.begin(), pipeline.filled_parameters.end());
  const StepSpec* before = nullptr;
  for (const auto& step : pipeline.steps) {
    for (const auto& [name, value] : step.parameters) taken.insert(name);
    if (step.when) take_parameters(*step.when, taken);
    if (step.repeat && step.repeat->until) take_parameters(*step.repeat->until, taken);
    if (is_sibling(std::exchange(before, &step), step)) continue;
    if (step.instance)
      for (const auto& [name, parameter] : pipeline.parameters)
        for (const auto& axis : step.instance->axes)
          if (has_item(*parameter, *step.axis_value(axis))) taken.insert(name);
    const auto& interpreter = step.command.interpreter;
    const bool is_plain_sh = interpreter.size() == 3 && interpreter[0] == "sh";  // `sh -e -c`
    if (is_plain_sh && orchestrators::has_pipe(step.command) &&
        !has_pipefail(step.settings->docker))
      found.add({&before, 1}, {"pipe-failure",
                               "only the last command of a pipe fails the step where `sh` has no "
                               "pipefail, as in Debian",
                               {},
                               {},
                               "leave out `shell: sh`: bash fails the step for each command of a "
                               "pipe, if the image has bash",
                               core::Severity::warning});
  }
  std::ranges::move(found.all(), std::back_inserter(all));
  for (const auto& [name, value] : pipeline.parameters)
    if (!taken.contains(name))
      all.push_back({"unused-parameter",
                     "no step takes the parameter '" + name + "'",
                     {},
                     {},
                     "name it in a command as ${params." + name + "}, or write `parameters: [" +
                         name + "]` in a step whose program reads PIPE_PARAM_" + name,
                     core::Severity::warning});
  return all;
}

}  // namespace pipeline::driver

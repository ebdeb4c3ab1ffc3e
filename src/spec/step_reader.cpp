#include "spec/step_reader.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/identifier.hpp"
#include "gpu/resource_checks.hpp"
#include "settings/contradictions.hpp"
#include "settings/decode.hpp"
#include "spec/condition.hpp"
#include "spec/data_reader.hpp"
#include "spec/output_reader.hpp"
#include "spec/requirements_file.hpp"
#include "spec/user_files.hpp"

namespace pipeline::spec {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

/// Returns the offset of the output's name in `STEP.OUTPUT` or `STEP[...].OUTPUT`; npos for another
/// form.
std::size_t output_in(std::string_view text) {
  const auto bracket = text.find('[');
  const auto dot = bracket == std::string_view::npos ? text.find('.') : text.rfind("].");
  if (dot == std::string_view::npos || dot == 0) return std::string_view::npos;
  const auto output = dot + (bracket == std::string_view::npos ? 1 : 2);
  const bool is_plain = output < text.size() &&
                        text.find_first_of(".[]", output) == std::string_view::npos &&
                        text.substr(0, bracket).find('.') >= dot;
  return is_plain && core::parse_selector(text.substr(0, output - 1)) ? output
                                                                      : std::string_view::npos;
}
constexpr settings::Format reference_text{
    "`STEP.OUTPUT`, or of a step with a matrix `STEP[*].OUTPUT`, `STEP[AXIS=VALUE].OUTPUT` or "
    "`STEP[=].OUTPUT`",
    [](std::string_view text) {
      return settings::formats::word.accepts(text) && output_in(text) != std::string_view::npos;
    }};
constexpr settings::Format step_reference{
    "the name of a step, or of some of its matrix, as `STEP[AXIS=VALUE]`",
    [](std::string_view text) {
      return settings::formats::word.accepts(text) && core::parse_selector(text).has_value();
    }};

/// Returns true for variables that pipe itself sets for a step.
bool is_reserved(std::string_view name) {
  return name.starts_with("PIPE_INPUT_") || name.starts_with("PIPE_OUTPUT_") ||
         name.starts_with("PIPE_PARAM_") || name == "PIPE_RUN_ID" || name == "PIPE_STEP_NAME" ||
         name == "PIPE_ATTEMPT" || name == "PIPE_SCRATCH" || name == "PIPE_CHECKPOINT";
}

}  // namespace

const Strings pipeline_keys{"name",    "description", "tags",           "parameters", "environment",
                            "secrets", "code",        "settings",       "retry",      "timeout",
                            "cache",   "shell",       "execution_mode", "steps"};
const Strings step_keys{
    "description", "matrix", "command",      "parameters",  "inputs",  "outputs",    "after",
    "when",        "run_on", "code",         "environment", "secrets", "settings",   "retry",
    "timeout",     "cache",  "orchestrator", "shell",       "version", "checkpoint", "publish"};

void report_keys(const core::Value& map, const Strings& allowed, const std::string& place,
                 settings::Diagnostics& diagnostics) {
  static const std::unordered_map<std::string_view, const char*> elsewhere{
      {"enable_cache", "write `cache: true` or `cache: false`"},
      {"retries", "write `retry: {max_retries: 3}`"},
      {"schedule", "a run is begun by `pipe run`: let cron, a systemd timer or CI call it"},
      {"depends_on", "write `after: [STEP]`; a step whose output is an input needs none"},
      {"if", "write `when: EXPRESSION`"},
      {"rules", "write `when: EXPRESSION`"},
      {"trigger_rule", "write `run_on: failure` or `run_on: always`"},
      {"needs", "write `after: [STEP]`; a step whose output is an input needs none"},
      {"env", "write `environment: {NAME: VALUE}`"},
      {"variables", "write `environment: {NAME: VALUE}`"},
      {"script", "write `command: |`, and the lines below it"},
      {"image", "write `settings: {docker: {parent_image: IMAGE}}`"},
      {"requirements", "write `settings: {docker: {requirements: [...]}}`"},
      {"resources", "write `settings: {resources: {...}}`"}};
  const auto before = diagnostics.size();
  settings::report_unknown_keys(map, allowed, place, diagnostics);
  for (auto i = before; i < diagnostics.size(); ++i)
    for (const auto& [key, value] : map.members)
      if (const auto known = elsewhere.find(key.scalar);
          known != elsewhere.end() && key.span.line == diagnostics[i].span.line &&
          key.span.column == diagnostics[i].span.column)
        diagnostics[i].suggestion = known->second;
}

std::optional<std::string> read_word(const char* key, const core::Value& value,
                                     const Strings& words, settings::Diagnostics& diagnostics) {
  if (value.kind == core::Value::Kind::scalar &&
      std::ranges::find(words, value.scalar) != words.end())
    return value.scalar;
  std::string expected;
  for (const auto& word : words)
    expected += (expected.empty() ? "" : word == words.back() ? " or " : ", ") + word;
  settings::report_type(diagnostics, key, expected.c_str(), value);
  diagnostics.back().suggestion = core::did_you_mean(value.scalar, words);
  return std::nullopt;
}

bool has_misspelt(const core::Value& map, const std::string& key) {
  return std::any_of(map.members.begin(), map.members.end(), [&](const auto& member) {
    return core::closest(member.first.scalar, std::span(&key, 1)).has_value();
  });
}

/// Caches facts about files, so that ten thousand steps with equal settings look once.
struct StepReader::Memory {
  std::unordered_map<std::string, Strings> requirements;
  std::unordered_map<std::string, bool> exists;
};

StepReader::StepReader(fs::path root, settings::Diagnostics& diagnostics)
    : root_(std::move(root)), diagnostics_(diagnostics), memory_(std::make_unique<Memory>()) {}
StepReader::~StepReader() = default;

Defaults StepReader::read_defaults(const core::Value& map, const Defaults* pipeline) {
  Defaults defaults;
  for (const auto& [key, value] : map.members) {
    if (key.scalar == "parameters")
      read_parameters(value, defaults, pipeline);
    else if (key.scalar == "shell")
      read_shell(value, defaults);
    else if (key.scalar == "environment")
      read_environment(value, defaults);
    else if (key.scalar == "secrets")
      read_secrets(value, defaults);
    else if (key.scalar == "retry") {
      defaults.retry = settings::decode_retry(value, diagnostics_);
      if (value.kind == core::Value::Kind::scalar)
        diagnostics_.back().suggestion =
            "did you mean `retry: {max_retries: " + value.scalar + "}`?";
    } else if (key.scalar == "cache")
      defaults.cache = settings::read_bool("cache", value, diagnostics_);
    else if (key.scalar == "timeout") {
      defaults.timeout = settings::read_duration("timeout", value, diagnostics_);
      if (defaults.timeout && *defaults.timeout <= Duration::zero())
        settings::report_type(diagnostics_, "timeout", "longer than no time at all", value);
    } else if (key.scalar == "settings") {
      auto settings = settings::decode_settings(value, diagnostics_);
      read_settings(value, settings);
      defaults.settings = std::move(settings);
    } else if (key.scalar == "code") {
      if (value.kind == core::Value::Kind::scalar) {
        if (auto pattern =
                settings::read_text("code", value, settings::formats::path, diagnostics_))
          defaults.code.emplace({std::move(*pattern)});
      } else if (auto patterns =
                     settings::read_texts("code", value, settings::formats::path, diagnostics_)) {
        defaults.code.emplace(std::move(*patterns));
      }
      check_code(value, defaults.code.items());
    }
  }
  return defaults;
}

ReadStep StepReader::read_step(const core::Value& key, const core::Value& body,
                               const Defaults& pipeline) {
  ReadStep step;
  step.key = &key;
  step.body = &body;
  StepSpec& spec = step.spec;
  spec.name = key.scalar;
  spec.line = key.span.line;
  if (!core::is_name(spec.name) || spec.name.find('.') != std::string::npos)
    settings::report(diagnostics_, "bad-name",
                     "'" + spec.name.substr(0, 60) + "' cannot be a step's name", key.span,
                     {"a name has letters, digits, `_` and `-`, begins with a letter or digit, and "
                      "has at most 128 characters"});
  if (body.kind != core::Value::Kind::map) {
    settings::report(
        diagnostics_, "wrong-type",
        "step '" + spec.name + "' must be a map with a `command`, not " + settings::describe(body),
        body.span);
    return step;
  }
  report_keys(body, step_keys, "step '" + spec.name + "'", diagnostics_);

  Defaults own = read_defaults(body, &pipeline);
  read_members(body, step);
  if (const auto* written = body.find("settings"))
    settings::check_against_pipeline(pipeline.settings, own.settings, *written, diagnostics_);
  if (!step.command && !has_misspelt(body, "command"))
    settings::report(diagnostics_, "missing-key", "step '" + spec.name + "' has no 'command'",
                     key.span, {"a list is executed as it stands, a text by `sh -e`"});

  add_defaults(step, std::move(own), pipeline);
  if (step.publish) spec.publish = read_publish(*step.publish, spec, diagnostics_);
  if (step.publish && body.find("matrix"))
    settings::report(diagnostics_, "contradiction",
                     "step '" + spec.name + "' has a matrix, so many outputs would get one name",
                     step.publish->span, {}, "publish from a step that takes the best of them");
  gpu::check_instance_type(std::as_const(spec.settings)->resources, body, key.span, diagnostics_);
  check_variables(step);
  return step;
}

void StepReader::read_members(const core::Value& body, ReadStep& step) {
  StepSpec& spec = step.spec;
  for (const auto& [name, value] : body.members) {
    if (name.scalar == "command")
      step.command = &value;
    else if (name.scalar == "description")
      spec.description =
          settings::read_text("description", value, settings::formats::text, diagnostics_)
              .value_or("");
    else if (name.scalar == "inputs")
      read_inputs(value, step);
    else if (name.scalar == "outputs")
      read_outputs(value, spec, diagnostics_);
    else if (name.scalar == "after") {
      if (const auto steps = settings::read_texts("after", value, step_reference, diagnostics_);
          steps && steps->size() == value.items.size()) {
        for (const auto& text : *steps)
          spec.after.push_back(step.after_selectors.emplace_back(*core::parse_selector(text)).step);
        for (const core::Value& item : value.items) step.after_spans.push_back(item.span);
      }
    } else if (name.scalar == "when") {
      step.when = &value;
    } else if (name.scalar == "run_on") {
      spec.run_on = read_run_on(value, diagnostics_);
    } else if (name.scalar == "version") {
      spec.version =
          settings::read_text("version", value, settings::formats::text, diagnostics_).value_or("");
    } else if (name.scalar == "checkpoint") {
      spec.checkpoint = settings::read_bool("checkpoint", value, diagnostics_).value_or(false);
    } else if (name.scalar == "publish") {
      step.publish = &value;
    } else if (name.scalar == "orchestrator") {
      spec.orchestrator =
          read_word("orchestrator", value, settings::orchestrator_names(), diagnostics_)
              .value_or("");
    }
  }
}

void StepReader::add_defaults(ReadStep& step, Defaults own, const Defaults& pipeline) {
  StepSpec& spec = step.spec;
  step.own_parameters = std::move(own.taken_parameters);
  for (const auto& [name, value] : own.parameters) step.own_parameters.insert(name);
  spec.parameters = std::move(own.parameters);
  spec.parameters.insert(pipeline.parameters.begin(), pipeline.parameters.end());
  spec.environment = std::move(own.environment);
  spec.environment.insert(pipeline.environment.begin(), pipeline.environment.end());
  spec.secrets = std::move(own.secrets);
  for (const SecretSpec& secret : pipeline.secrets)
    if (std::none_of(spec.secrets.begin(), spec.secrets.end(),
                     [&](const SecretSpec& other) { return other.name == secret.name; }))
      spec.secrets.push_back(secret);
  spec.settings = pipeline.settings;
  if (step.body->find("settings")) spec.settings = settings::merge(pipeline.settings, own.settings);
  spec.retry = settings::merge(pipeline.retry, own.retry);
  spec.timeout = own.timeout ? own.timeout : pipeline.timeout;
  // A notification or a clean-up has effects, which an earlier one does not replace.
  spec.cache = own.cache.value_or(spec.run_on == RunOn::success && pipeline.cache.value_or(true));
  spec.code = own.code ? own.code : pipeline.code;
  spec.command.interpreter = own.shell.value_or(pipeline.shell.value_or(Strings{}));
}

void StepReader::check_file(const core::Value& settings,
                            std::initializer_list<std::string_view> keys, bool folder) {
  const core::Value* value = &settings;
  for (const auto key : keys)
    if (!(value = value->find(key))) return;
  if (value->kind != core::Value::Kind::scalar || !settings::formats::path.accepts(value->scalar))
    return;
  const auto [known, is_new] = memory_->exists.emplace(value->scalar + (folder ? "/" : ""), false);
  std::error_code error;
  const fs::path path = root_ / value->scalar;
  if (is_new)
    known->second = folder ? fs::is_directory(path, error) : fs::is_regular_file(path, error);
  if (is_new) sources_.insert(path.lexically_normal());
  if (!known->second)
    settings::report(diagnostics_, "missing-file",
                     std::string("the ") + (folder ? "folder" : "file") + " '" + value->scalar +
                         "' does not exist",
                     value->span, {"looked for " + path.lexically_normal().string()});
}

void StepReader::read_settings(const core::Value& map, Settings& settings) {
  gpu::check_placement(map, diagnostics_);
  const core::Value* docker = map.find("docker");
  if (!docker || docker->kind != core::Value::Kind::map) return;
  check_file(*docker, {"dockerfile"}, false);
  check_file(*docker, {"build_context_root"}, true);
  check_file(*docker, {"pyproject_path"}, false);
  check_file(*docker, {"build_config", "dockerignore"}, false);
  check_file(*docker, {"parent_image_build_config", "dockerignore"}, false);
  const core::Value* requirements = docker->find("requirements");
  if (requirements && requirements->kind == core::Value::Kind::list) {
    auto& list = settings.docker.requirements;
    const auto is_file = [](const auto& line) {
      return line.starts_with("-r ") || line.starts_with("-c ") || line.starts_with("--constraint");
    };
    if (std::ranges::any_of(list.items(), is_file))
      list.emplace(
          expand_requirements(list.items(), root_, requirements->span, diagnostics_, sources_));
  }
  if (!requirements || requirements->kind != core::Value::Kind::scalar ||
      !settings::formats::path.accepts(requirements->scalar))
    return;
  const auto [known, is_new] = memory_->requirements.try_emplace(requirements->scalar);
  if (is_new)
    known->second = read_requirements(root_ / requirements->scalar, requirements->scalar,
                                      requirements->span, diagnostics_, sources_);
  settings.docker.requirements.emplace(known->second);
}

void StepReader::check_code(const core::Value& code, const Strings& patterns) {
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    const core::Value& place =
        code.kind == core::Value::Kind::list && patterns.size() == code.items.size() ? code.items[i]
                                                                                     : code;
    const fs::path path = fs::path(patterns[i]).lexically_normal();
    if (path.is_absolute() || *path.begin() == "..") {
      settings::report(diagnostics_, "code-outside",
                       "'" + patterns[i] + "' leaves the pipeline's folder", place.span,
                       {"code is what lies beside the pipeline file or below"});
      continue;
    }
    const auto glob = patterns[i].find_first_of("*?[\\");
    const fs::path literal =
        glob == std::string::npos
            ? path
            : fs::path(patterns[i].substr(0, patterns[i].rfind('/', glob) + 1));
    const auto [known, is_new] = memory_->exists.emplace("code:" + patterns[i], false);
    std::error_code error;
    if (is_new) known->second = fs::exists(root_ / literal, error);
    if (!known->second)
      settings::report(diagnostics_, "missing-file",
                       "the code '" + patterns[i] + "' does not exist", place.span,
                       {"looked for " + (root_ / literal / "").parent_path().string()});
  }
}

void StepReader::take_parameter(const core::Value& name, Defaults& defaults,
                                const Defaults& pipeline) {
  if (pipeline.parameters.contains(name.scalar)) {
    defaults.taken_parameters.insert(name.scalar);
    return;
  }
  Strings known;
  for (const auto& [each, value] : pipeline.parameters) known.push_back(each);
  settings::report(
      diagnostics_, "unknown-parameter",
      "the pipeline has no parameter '" + core::printable(name.scalar.substr(0, 60)) + "'",
      name.span, {"a parameter without a value is one of the pipeline's"},
      core::did_you_mean(name.scalar, known));
}

void StepReader::read_shell(const core::Value& value, Defaults& defaults) {
  if (value.kind == core::Value::Kind::list) {
    auto words = settings::read_texts("shell", value, settings::formats::word, diagnostics_);
    if (words && value.items.empty())
      settings::report(diagnostics_, "empty-command", "'shell' is an empty list", value.span,
                       {"as in `shell: [bash, -c]`"});
    defaults.shell = std::move(words);
    return;
  }
  const auto word = read_word("shell", value, {"sh", "bash"}, diagnostics_);
  if (!word)
    diagnostics_.back().notes.push_back(
        "or a list of the words before the command, as `[bash, -c]`");
  if (word == "sh") defaults.shell.emplace();
  if (word == "bash") defaults.shell = Strings{"bash", "-e", "-o", "pipefail", "-c"};
}

void StepReader::read_parameters(const core::Value& value, Defaults& defaults,
                                 const Defaults* pipeline) {
  if (pipeline && value.kind == core::Value::Kind::list) {
    for (const core::Value& item : value.items) take_parameter(item, defaults, *pipeline);
    return;
  }
  if (pipeline && value.kind == core::Value::Kind::scalar && value.scalar == "all") {
    for (const auto& [name, each] : pipeline->parameters) defaults.taken_parameters.insert(name);
    return;
  }
  if (pipeline && value.kind != core::Value::Kind::map)
    return settings::report_type(
        diagnostics_, "parameters",
        "a map of names to values, a list of names of the pipeline's parameters, or `all`", value);
  if (!settings::expect_map("parameters", value, diagnostics_)) return;
  for (const auto& [name, member] : value.members) {
    if (pipeline && member.kind == core::Value::Kind::null) {
      take_parameter(name, defaults, *pipeline);
    } else if (!slot_name.accepts(name.scalar)) {
      settings::report(diagnostics_, "bad-name",
                       "'" + name.scalar.substr(0, 60) + "' cannot be a parameter's name",
                       name.span, {std::string("it must be ") + slot_name.expected});
    } else if (member.kind != core::Value::Kind::scalar) {
      settings::report_type(diagnostics_, name.scalar, "a text, a number or a boolean", member);
      if (member.kind != core::Value::Kind::null)
        diagnostics_.back().notes.push_back(
            "a parameter is one value: write a structure to a file and name that under `code`");
    } else if (!settings::formats::text.accepts(member.scalar)) {
      settings::report(diagnostics_, "control-character",
                       "parameter '" + name.scalar + "' has a control character in it",
                       member.span);
    } else if (auto json = settings::scalar_to_json(member)) {
      defaults.parameters.emplace(name.scalar, std::move(*json));
    } else {
      settings::report(
          diagnostics_, "bad-number",
          "the number " + member.scalar.substr(0, 40) + " is beyond what a parameter can hold",
          member.span, {"put it in quotes to pass it on as a text"});
    }
  }
}

void StepReader::read_environment(const core::Value& value, Defaults& defaults) {
  const auto add = [&](const core::Value& name, std::optional<std::string> content) {
    if (!settings::formats::variable.accepts(name.scalar))
      settings::report(diagnostics_, "bad-name",
                       "'" + name.scalar.substr(0, 60) + "' cannot be a variable's name", name.span,
                       {std::string("it must be ") + settings::formats::variable.expected});
    else if (is_reserved(name.scalar))
      settings::report(diagnostics_, "reserved-name", "'" + name.scalar + "' is set by pipe itself",
                       name.span);
    else
      defaults.environment.emplace(name.scalar, std::move(content));
  };
  if (value.kind == core::Value::Kind::list) {
    if (const auto names =
            settings::read_texts("environment", value, settings::formats::line, diagnostics_);
        names && names->size() == value.items.size())
      for (const core::Value& item : value.items) add(item, std::nullopt);
  } else if (value.kind == core::Value::Kind::map) {
    for (const auto& [name, member] : value.members) {
      if (member.kind == core::Value::Kind::null)
        add(name, std::nullopt);
      else if (auto content = settings::read_text("environment." + name.scalar, member,
                                                  settings::formats::text, diagnostics_))
        add(name, std::move(*content));
    }
  } else {
    settings::report_type(
        diagnostics_, "environment",
        "a map of names to values, or a list of names whose values come from the caller", value);
  }
}

void StepReader::read_secrets(const core::Value& value, Defaults& defaults) {
  static const Strings keys{"name", "file"};
  if (value.kind != core::Value::Kind::list)
    return settings::report_type(diagnostics_, "secrets", "a list of names, or of {name, file}",
                                 value);
  for (const core::Value& item : value.items) {
    const core::Value* name = &item;
    SecretSpec secret;
    if (item.kind == core::Value::Kind::map) {
      settings::report_unknown_keys(item, keys, "a secret", diagnostics_);
      name = item.find("name");
      if (!name) {
        settings::report(diagnostics_, "missing-key", "this secret has no 'name'", item.span);
        continue;
      }
      if (const core::Value* file = item.find("file"))
        if (const auto path =
                settings::read_text("file", *file, settings::formats::path, diagnostics_))
          secret.file = user_path(*path, root_);
    }
    if (name->kind != core::Value::Kind::scalar ||
        !settings::formats::variable.accepts(name->scalar))
      settings::report_type(diagnostics_, "secrets", settings::formats::variable.expected, *name);
    else if (is_reserved(name->scalar))
      settings::report(diagnostics_, "reserved-name",
                       "'" + name->scalar + "' is set by pipe itself", name->span);
    else if (std::any_of(defaults.secrets.begin(), defaults.secrets.end(),
                         [&](const SecretSpec& other) { return other.name == name->scalar; }))
      settings::report(diagnostics_, "duplicate-key",
                       "the secret '" + name->scalar + "' is listed twice", name->span);
    else {
      secret.name = name->scalar;
      defaults.secrets.push_back(std::move(secret));
    }
  }
}

void StepReader::read_inputs(const core::Value& value, ReadStep& step) {
  if (value.kind != core::Value::Kind::map)
    return settings::report_type(diagnostics_, "inputs",
                                 "a map of names to `STEP.OUTPUT`, paths or URLs", value);
  for (const auto& [name, member] : value.members) {
    if (!slot_name.accepts(name.scalar)) {
      settings::report(diagnostics_, "bad-name",
                       "'" + name.scalar.substr(0, 60) + "' cannot be an input's name", name.span,
                       {std::string("it must be ") + slot_name.expected});
    } else if (is_data(member)) {
      if (auto data = read_data(name.scalar, member, root_, diagnostics_)) {
        step.spec.inputs.push_back({.name = name.scalar, .data = std::move(data)});
        step.input_selectors.emplace_back();
        step.input_spans.push_back(member.span);
      }
    } else if (auto reference = settings::read_text("inputs." + name.scalar, member, reference_text,
                                                    diagnostics_)) {
      const auto output = output_in(*reference);
      auto selector = *core::parse_selector(std::string_view(*reference).substr(0, output - 1));
      step.spec.inputs.push_back({name.scalar, {{selector.step, reference->substr(output)}}});
      step.input_selectors.push_back(std::move(selector));
      step.input_spans.push_back(member.span);
    }
  }
}

void StepReader::check_variables(const ReadStep& step) {
  const StepSpec& spec = step.spec;
  for (const SecretSpec& secret : spec.secrets)
    if (spec.environment.contains(secret.name))
      settings::report(diagnostics_, "contradiction",
                       "'" + secret.name + "' of step '" + spec.name +
                           "' is both under 'environment' and under 'secrets'",
                       step.key->span, {"what is under 'environment' is stored and shown"});
  std::unordered_map<std::string, std::string> variables;
  const auto add = [&](std::string_view prefix, const std::string& name) {
    const auto [other, is_new] = variables.emplace(core::variable_name(prefix, name), name);
    if (!is_new && other->second != name)
      settings::report(diagnostics_, "contradiction",
                       "'" + other->second + "' and '" + name + "' of step '" + spec.name +
                           "' both become the variable " + other->first,
                       step.key->span);
  };
  const auto mixed = [](const auto& names,
                        auto&& name_of) {  // Only names with these characters can have the same
                                           // variable as another name.
    return names.size() > 1 && std::any_of(names.begin(), names.end(), [&](const auto& each) {
             const std::string& name = name_of(each);
             return std::any_of(name.begin(), name.end(),
                                [](char c) { return c == '-' || (c >= 'A' && c <= 'Z'); });
           });
  };
  const auto slot = [](const auto& each) -> const std::string& { return each.name; };
  const auto key = [](const auto& each) -> const std::string& { return each.first; };
  if (mixed(spec.inputs, slot))
    for (const auto& input : spec.inputs) add("PIPE_INPUT_", input.name);
  if (mixed(spec.outputs, slot))
    for (const auto& output : spec.outputs) add("PIPE_OUTPUT_", output.name);
  if (mixed(spec.parameters, key))
    for (const auto& [name, value] : spec.parameters) add("PIPE_PARAM_", name);
}

}  // namespace pipeline::spec

#include "spec/step_reader.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "core/identifier.hpp"
#include "core/text.hpp"
#include "gpu/resource_checks.hpp"
#include "orchestrators/catalog/catalog.hpp"
#include "settings/contradictions.hpp"
#include "settings/decode.hpp"
#include "settings/image_archive.hpp"
#include "spec/condition.hpp"
#include "spec/data_reader.hpp"
#include "spec/include.hpp"
#include "spec/keys.hpp"
#include "spec/limits_reader.hpp"
#include "spec/nodes_reader.hpp"
#include "spec/notebook_reader.hpp"
#include "spec/output_reader.hpp"
#include "spec/placeholders.hpp"
#include "spec/requirements_file.hpp"
#include "spec/retry_checks.hpp"
#include "spec/services_reader.hpp"
#include "spec/user_files.hpp"
#include "spec/variables_reader.hpp"
#include "vcs/repository.hpp"

namespace pipeline::spec {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

constexpr settings::Format step_reference{
    "the name of a step, or of some instances of its matrix, as `STEP[AXIS=VALUE]`",
    [](std::string_view text) {
      return settings::formats::word.accepts(text) && model::parse_selector(text).has_value();
    }};

/// Makes paths of an included file's settings relative to the pipeline's folder.
/// @param folder the file's folder, relative to the pipeline's
void rebase(DockerSettings& docker, const fs::path& folder) {
  const auto move = [&](std::optional<std::string>& path) {
    if (path && !fs::path(*path).is_absolute())
      path = (folder / *path).lexically_normal().generic_string();
  };
  if (auto archive = settings::image_archive(docker.parent_image.value_or(""))) {
    std::optional<std::string> path = archive->path;
    move(path);
    archive->path = *path;
    docker.parent_image = archive->text();
  }
  move(docker.dockerfile);
  move(docker.build_context_root);
  move(docker.pyproject_path);
  move(docker.build_config.dockerignore);
  move(docker.parent_image_build_config.dockerignore);
  if (!docker.volumes) return;
  auto volumes = docker.volumes.items();
  for (auto& volume : volumes) {
    if (!volume.starts_with("./") && !volume.starts_with("../")) continue;
    const auto colon = volume.find(':');
    const auto source = (folder / volume.substr(0, colon)).lexically_normal().generic_string();
    volume = (source.starts_with("..") ? "" : "./") + source +
             (colon == std::string::npos ? "" : volume.substr(colon));
  }
  docker.volumes.emplace(std::move(volumes));
}

/// Frees the members whose values are in the spec by now.
void forget_members(core::Value& body, const ReadStep& step) {
  const auto is_read = [&](const core::Value::Member& member) {
    const auto& key = member.first.scalar;
    // The names of inputs with errors, and texts of filled ones, are still needed.
    if (key == "inputs")
      return step.inputs_to_fill.empty() && step.spec.inputs.size() == member.second.members.size();
    return key == "outputs" || key == "after";
  };
  if (std::erase_if(body.members.vector(), is_read) > 0) body.members.shrink_to_fit();
}

}  // namespace

/// Caches facts about files: ten thousand steps with equal settings look once.
struct StepReader::Memory {
  std::unordered_map<std::string, Strings> requirements;
  std::unordered_map<std::string, bool> exists;
};

StepReader::StepReader(const FileScope& scope, fs::path root, MemoryBudget& budget,
                       settings::Diagnostics& diagnostics)
    : scope_(scope),
      folder_(scope.folder()),
      root_(std::move(root)),
      budget_(budget),
      diagnostics_(diagnostics),
      memory_(std::make_unique<Memory>()) {}
StepReader::~StepReader() = default;

Defaults StepReader::read_defaults(const core::Value& map, const Defaults* pipeline, Texts texts) {
  Defaults defaults;
  const core::Value* retry = nullptr;
  for (const auto& [key, value] : map.members) {
    if (texts == Texts::as_written && is_filled_key(key.scalar) && names_parameters(value))
      continue;  // fill() reads it.
    if (key.scalar == "parameters")
      read_parameters(value, defaults, pipeline, diagnostics_);
    else if (key.scalar == "shell")
      read_shell(value, defaults);
    else if (key.scalar == "environment")
      read_environment(value, defaults, diagnostics_);
    else if (key.scalar == "secrets")
      read_secrets(value, defaults, folder_, diagnostics_);
    else if (key.scalar == "retry") {
      retry = &value;
      read_retry(value, defaults);
    } else if (key.scalar == "cache")
      read_cache(value, defaults);
    else if (key.scalar == "timeout")
      defaults.timeout = read_time("timeout", value);
    else if (key.scalar == "stalled_after")
      defaults.stalled_after = read_time("stalled_after", value);
    else if (key.scalar == "settings") {
      auto settings = settings::decode_settings(value, diagnostics_);
      read_settings(value, settings);
      if (folder_ != root_) rebase(settings.docker, folder_.lexically_relative(root_));
      defaults.settings = std::move(settings);
      defaults.has_settings = true;
    } else if (key.scalar == "publish_to") {
      const auto folder =
          settings::read_text("publish_to", value, settings::formats::path, diagnostics_);
      if (folder) defaults.publish_to = user_path(*folder, folder_);
    } else if (key.scalar == "wait") {
      read_wait(value, defaults);
    } else if (key.scalar == "services") {
      defaults.services = read_services(value, diagnostics_);
    } else if (key.scalar == "nodes") {
      defaults.nodes = read_nodes(value, diagnostics_);
    } else if (key.scalar == "code") {
      read_code(value, defaults);
    }
  }
  if (retry && !pipeline)
    check_retry(defaults.retry, *retry, nullptr, defaults.stalled_after, diagnostics_);
  return defaults;
}

Defaults StepReader::read_given_parameters(const core::Value& value, const Defaults& defaults) {
  Defaults given;
  read_parameters(value, given, &defaults, diagnostics_);
  return given;
}

void StepReader::read_retry(const core::Value& value, Defaults& defaults) {
  defaults.retry = settings::decode_retry(value, diagnostics_);
  defaults.has_retry = true;
  const bool is_count = value.kind == core::Value::Kind::scalar && !value.scalar.empty() &&
                        core::all(value.scalar, core::is_digit);
  if (is_count)
    diagnostics_.back().suggestion = "did you mean `retry: {max_retries: " + value.scalar + "}`?";
}

void StepReader::read_wait(const core::Value& value, Defaults& defaults) {
  const auto scalar = settings::scalar_to_json(value);
  if (!value.quoted && scalar && scalar->is_boolean())
    settings::report_type(diagnostics_, "wait", "a question, as in `wait: Deploy?`", value);
  else
    defaults.wait =
        settings::read_text("wait", value, settings::formats::line, diagnostics_).value_or("");
}

/// Reads a pattern, or a list of patterns.
void StepReader::read_code(const core::Value& value, Defaults& defaults) {
  if (value.kind == core::Value::Kind::scalar) {
    if (auto pattern = settings::read_text("code", value, settings::formats::path, diagnostics_))
      defaults.code.emplace({std::move(*pattern)});
  } else if (auto patterns =
                 settings::read_texts("code", value, settings::formats::path, diagnostics_)) {
    defaults.code.emplace(std::move(*patterns));
  }
  check_code(value, defaults.code.items());
}

/// Reads `true`, `false` or `{max_age: 24h, until: TEXT}`.
void StepReader::read_cache(const core::Value& value, Defaults& defaults) {
  if (value.kind != core::Value::Kind::map) {
    defaults.cache = settings::read_bool("cache", value, diagnostics_);
    if (!defaults.cache)
      diagnostics_.back().notes.emplace_back(
          "or `{max_age: 24h}`, or `{until: \"${params.day}\"}`");
    return;
  }
  static const Strings keys{"max_age", "until"};
  settings::report_unknown_keys(value, keys, "'cache'", diagnostics_);
  defaults.cache = true;
  if (const auto* age = value.find("max_age")) defaults.cache_max_age = read_time("max_age", *age);
  if (const auto* until = value.find("until"))
    defaults.cache_until =
        settings::read_text("until", *until, settings::formats::text, diagnostics_).value_or("");
}

std::optional<Duration> StepReader::read_time(const char* key, const core::Value& value) {
  const auto time = settings::read_duration(key, value, diagnostics_);
  if (time && *time <= Duration::zero())
    settings::report_type(diagnostics_, key, "a duration above zero", value);
  return time;
}

ReadStep StepReader::read_step(const core::Value& key, core::Value& body, const Defaults& pipeline,
                               StepSpec& spec) {
  ReadStep step{spec};
  step.key = &key;
  step.body = &body;
  step.scope = &scope_;
  step.reader = this;
  spec.name = key.scalar;
  spec.line = key.span.line;
  spec.column = key.span.column;
  spec.file = key.span.file;
  if (folder_ != root_) spec.code_root = folder_;
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

  for (const auto& [name, value] : body.members)
    if (is_filled_key(name.scalar) && names_parameters(value))
      step.keys_to_fill.push_back(name.scalar);
  Defaults own = read_defaults(body, &pipeline);
  read_members(body, step);
  if (!body.find("command") && !body.find("notebook") && !has_misspelt(body, "command") &&
      !has_misspelt(body, "notebook"))
    settings::report(diagnostics_, "missing-key", "step '" + spec.name + "' has no 'command'",
                     key.span, {"a list is executed as it stands, a text by a shell"});

  if (const auto* written = body.find("settings"); written && own.has_settings)
    settings::check_against_pipeline(pipeline.settings, own.settings, *written, diagnostics_);
  add_defaults(step, std::move(own), pipeline);
  if (step.notebook) read_notebook(step, folder_, diagnostics_);
  check_step(step);
  forget_members(body, step);
  return step;
}

void StepReader::check_step(ReadStep& step) {
  StepSpec& spec = step.spec;
  const core::Value& body = *step.body;
  const core::Value* publish = body.find("publish");
  if (publish) spec.publish = read_publish(*publish, spec, diagnostics_);
  if (publish && body.find("matrix"))
    settings::report(diagnostics_, "contradiction",
                     "step '" + spec.name + "' has a matrix, so many outputs would get one name",
                     publish->span, {}, "publish from a step that takes the best of them");
  gpu::check_instance_type(std::as_const(spec.settings)->resources, body, step.key->span,
                           diagnostics_);
  check_variables(step, diagnostics_);
  if (const auto* written = body.find("services")) check_services(spec, *written, diagnostics_);
  const auto from_all = std::ranges::find_if(spec.outputs, &OutputSpec::from_all_nodes);
  if (from_all != spec.outputs.end() && !body.find("nodes") && !has_misspelt(body, "nodes"))
    settings::report(diagnostics_, "contradiction",
                     "the output '" + from_all->name + "' of '" + spec.name +
                         "' is `from: all`, and the step has no `nodes`",
                     body.find("outputs")->span, {}, "write `nodes: 2`, or leave `from` out");
  if (const auto* written = body.find("nodes"); written && spec.nodes && step.keys_to_fill.empty())
    check_nodes(spec, *written, diagnostics_);
}

void StepReader::read_members(const core::Value& body, ReadStep& step) {
  StepSpec& spec = step.spec;
  for (const auto& [name, value] : body.members) {
    if (name.scalar == "notebook") {
      const auto file =
          settings::read_text("notebook", value, settings::formats::path, diagnostics_);
      if (!file) continue;
      check_code(value, {*file});
      step.notebook = *file;
    } else if (name.scalar == "description")
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
        for (const auto& text : *steps) {
          auto selector = *model::parse_selector(text);
          selector.step = scope_.step_called(selector.step);
          spec.after.push_back(selector.step);
          step.after.push_back({std::move(selector), value.items[step.after.size()].span});
        }
      }
    } else if (name.scalar == "run_on") {
      spec.run_on = read_run_on(value, diagnostics_);
    } else if (name.scalar == "version") {
      spec.version =
          settings::read_text("version", value, settings::formats::text, diagnostics_).value_or("");
    } else if (name.scalar == "checkpoint") {
      spec.checkpoint = settings::read_bool("checkpoint", value, diagnostics_).value_or(false);
    } else if (name.scalar == "allow_failure") {
      spec.allow_failure =
          settings::read_bool("allow_failure", value, diagnostics_).value_or(false);
    } else if (name.scalar == "max_parallel") {
      spec.max_parallel = read_units("max_parallel", value, diagnostics_);
      if (!body.find("matrix"))
        settings::report(
            diagnostics_, "contradiction",
            "'max_parallel' is for a step with a matrix, and '" + spec.name + "' has none",
            name.span, {}, "a limit of several steps is a `limits` of a profile");
    } else if (name.scalar == "uses") {
      spec.uses = read_limits("uses", value, diagnostics_);
    } else if (name.scalar == "orchestrator") {
      spec.orchestrator =
          read_word("orchestrator", value, orchestrators::orchestrator_names(), diagnostics_)
              .value_or("");
    }
  }
}

void inherit(Defaults& own, const Defaults& from) {
  own.environment.insert(from.environment.begin(), from.environment.end());
  for (const SecretSpec& secret : from.secrets)
    if (std::none_of(own.secrets.begin(), own.secrets.end(),
                     [&](const SecretSpec& other) { return other.name == secret.name; }))
      own.secrets.push_back(secret);
  if (own.has_settings)
    own.settings = settings::merge(from.settings, own.settings);
  else
    own.settings = from.settings;
  own.has_settings |= from.has_settings;
  if (own.has_retry)
    own.retry = settings::merge(from.retry, own.retry);
  else
    own.retry = from.retry;
  own.has_retry |= from.has_retry;
  if (!own.timeout) own.timeout = from.timeout;
  if (!own.stalled_after) own.stalled_after = from.stalled_after;
  if (!own.cache) {
    own.cache = from.cache;
    own.cache_max_age = from.cache_max_age;
    own.cache_until = from.cache_until;
  }
  if (!own.code) own.code = from.code;
  if (!own.shell) own.shell = from.shell;
}

void StepReader::add_defaults(ReadStep& step, Defaults own, const Defaults& pipeline) {
  StepSpec& spec = step.spec;
  for (const auto& name : own.taken_parameters) step.add_own_parameter(name);
  for (const auto& [name, value] : own.parameters) step.add_own_parameter(name);
  spec.parameters = std::move(own.parameters);
  spec.parameters.insert(pipeline.parameters.begin(), pipeline.parameters.end());
  const auto own_cache = own.cache;
  inherit(own, pipeline);
  spec.environment = std::move(own.environment);
  spec.secrets = std::move(own.secrets);
  spec.settings = std::move(own.settings);
  spec.retry = own.retry;
  spec.timeout = own.timeout;
  spec.stalled_after = own.stalled_after;
  spec.cache_max_age = own.cache_max_age;
  spec.cache_until = own.cache_until;
  spec.publish_to = own.publish_to;
  spec.wait = own.wait;
  spec.services = std::move(own.services);
  spec.nodes = own.nodes;
  if (const auto* retry = step.body->find("retry"); retry && !names_parameters(*retry))
    check_retry(spec.retry, *retry, &*std::as_const(spec.settings), spec.stalled_after.optional(),
                diagnostics_);
  // A notification, a clean-up or an approval is not replaced by an earlier result.
  spec.cache = own_cache.value_or(spec.run_on == RunOn::success && !step.body->find("wait") &&
                                  own.cache.value_or(true));
  if (own.code) spec.code = CopyOnWrite<StringList>(std::move(own.code));
  spec.command.interpreter = std::move(own.shell).value_or(Strings{});
}

void StepReader::check_file(const core::Value& settings,
                            std::initializer_list<std::string_view> keys, fs::file_type type) {
  const core::Value* value = &settings;
  for (const auto key : keys) {
    value = value->find(key);
    if (!value) return;
  }
  if (value->kind == core::Value::Kind::scalar && settings::formats::path.accepts(value->scalar))
    check_path(*value, value->scalar, type);
}

void StepReader::check_path(const core::Value& value, const std::string& name, fs::file_type type) {
  const bool is_folder = type == fs::file_type::directory;
  const auto [known, is_new] = memory_->exists.emplace(name + (is_folder ? "/" : ""), false);
  std::error_code error;
  const fs::path path = folder_ / name;
  if (is_new) {
    known->second = fs::status(path, error).type() == type;
    sources_.insert(path.lexically_normal());
  }
  if (!known->second)
    settings::report(
        diagnostics_, "missing-file",
        std::string("the ") + (is_folder ? "folder" : "file") + " '" + name + "' does not exist",
        value.span, {"looked for " + path.lexically_normal().string()},
        vcs::sparse_advice(folder_, name));
}

void StepReader::read_settings(const core::Value& map, Settings& settings) {
  gpu::check_placement(map, diagnostics_);
  const core::Value* docker = map.find("docker");
  if (!docker || docker->kind != core::Value::Kind::map) return;
  constexpr auto regular = fs::file_type::regular, directory = fs::file_type::directory;
  if (const auto* image = docker->find("parent_image");
      image && image->kind == core::Value::Kind::scalar &&
      settings::formats::parent_image.accepts(image->scalar))
    if (const auto archive = settings::image_archive(image->scalar))
      check_path(*image, archive->path, archive->is_folder() ? directory : regular);
  check_file(*docker, {"dockerfile"}, regular);
  check_file(*docker, {"build_context_root"}, directory);
  check_file(*docker, {"pyproject_path"}, regular);
  check_file(*docker, {"build_config", "dockerignore"}, regular);
  check_file(*docker, {"parent_image_build_config", "dockerignore"}, regular);
  const core::Value* requirements = docker->find("requirements");
  if (requirements && requirements->kind == core::Value::Kind::list) {
    auto& list = settings.docker.requirements;
    const auto is_file = [](const auto& line) {
      return line.starts_with("-r ") || line.starts_with("-c ") || line.starts_with("--constraint");
    };
    if (std::ranges::any_of(list.items(), is_file))
      list.emplace(
          expand_requirements(list.items(), folder_, requirements->span, diagnostics_, sources_));
  }
  if (!requirements || requirements->kind != core::Value::Kind::scalar ||
      !settings::formats::path.accepts(requirements->scalar))
    return;
  const auto [known, is_new] = memory_->requirements.try_emplace(requirements->scalar);
  if (is_new)
    known->second = read_requirements(folder_ / requirements->scalar, requirements->scalar,
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
    if (is_new) known->second = fs::exists(folder_ / literal, error);
    if (!known->second)
      settings::report(diagnostics_, "missing-file",
                       (patterns[i].ends_with(".ipynb") ? "the notebook '" : "the code '") +
                           patterns[i] + "' does not exist",
                       place.span,
                       {"looked for " + (folder_ / literal / "").parent_path().string()},
                       vcs::sparse_advice(folder_, literal.generic_string()));
  }
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
  if (word == "sh") defaults.shell = Strings{"sh", "-e", "-c"};
  if (word == "bash") defaults.shell = Strings{"bash", "-e", "-o", "pipefail", "-c"};
}

}  // namespace pipeline::spec

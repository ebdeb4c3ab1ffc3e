#include "engine/cache/cache_key.hpp"

#include <algorithm>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "core/notebook.hpp"
#include "settings/accelerator.hpp"

namespace pipeline::engine {
namespace {

using store::KeyPart;

/// Code with more files is one key part for each first folder, so that keys stay small.
constexpr std::size_t max_files_by_name = 256;
/// Begins the name of a key part for code; all of these are next to each other in a key.
constexpr const char* code_prefix = "code ";

/// Returns the text itself, or its digest if it is long, because keys are stored with each step.
std::string short_text(const std::string& text) {
  return text.size() <= 200 ? text : "sha256:" + core::sha256(text).hex();
}

std::string_view placeholder_name(Template::Placeholder placeholder) {
  switch (placeholder) {
    case Template::Placeholder::input: return "inputs.";
    case Template::Placeholder::output: return "outputs.";
    case Template::Placeholder::parameter: return "params.";
    case Template::Placeholder::run_id: return "run.id";
    case Template::Placeholder::step_name: return "step.name";
    case Template::Placeholder::environment: return "env.";
    case Template::Placeholder::checkpoint: return "checkpoint";
    case Template::Placeholder::node_rank: return "node.rank";
    case Template::Placeholder::node_count: return "node.count";
  }
  return "";
}

/// Returns the number and model of the requested GPUs as text. Their identities and other
/// requirements do not change a step's result.
std::string text_of(const settings::GpuRequest& request) {
  using Selection = settings::GpuRequest::Selection;
  std::string text = request.if_present ? "if present, " : "";
  if (request.selection == Selection::all) {
    text += "all";
  } else {
    text += std::to_string(request.selection == Selection::devices ? request.devices.size()
                                                                   : request.count);
  }
  return request.model ? text + " " + *request.model : text;
}

/// Returns the value of a declared variable in the user's environment, else in `.env`.
std::optional<std::string> users_value(const StepSpec& step, const std::string& name) {
  if (const char* own = std::getenv(name.c_str())) return own;
  const StringMap& file = *step.env_file;
  const auto found = file.find(name);
  return found == file.end() ? std::nullopt : std::optional(found->second);
}

/// Returns true if a change of the value is shown to the user. For `code train.py`, whose value is
/// a digest, only the fact that it changed is shown.
bool has_readable_value(const std::string& name) {
  return name.starts_with("parameter ") || name == "command" || name == "gpus" || name == "nodes" ||
         name == "processes" || name == "version" || name == "cache until" ||
         name.starts_with("output ") ||
         (name.starts_with("service ") && !name.ends_with(" command"));
}

/// Returns the key parts for a service beside the step, such as a database. A variable of the
/// service without a value takes it from the step, whose key has that value already.
std::vector<KeyPart> service_parts(const std::string& name, const ServiceSpec& service) {
  core::Hasher hasher;
  for (const auto& words : {service.entrypoint, service.command}) {
    hasher.field(std::to_string(words.size()));
    for (const auto& word : words) hasher.field(word);
  }
  for (const auto& [variable, value] : service.environment)
    hasher.field(variable).field(value ? "=" + *value : "");
  return {{"service " + name, service.image},
          {"service " + name + " command", hasher.finish().hex()}};
}

}  // namespace

void digest_notebook(store::TreeFile& file, const std::filesystem::path& path) {
  if (!core::is_notebook(file.path)) return;
  const auto cells = core::notebook_code(path);
  if (!cells) return;
  core::Hasher hasher;
  hasher.field("notebook");
  for (const auto& cell : *cells) hasher.field(cell);
  file.digest = hasher.finish();
}

std::vector<KeyPart> code_parts(std::vector<store::TreeFile> files) {
  if (!std::ranges::is_sorted(files, {}, &store::TreeFile::path))
    std::ranges::sort(files, {}, &store::TreeFile::path);
  std::vector<KeyPart> parts;
  if (files.size() <= max_files_by_name) {
    for (const auto& file : files)
      parts.push_back({code_prefix + file.path, file.digest.hex() + (file.executable ? "x" : "")});
    return parts;
  }
  std::map<std::string, core::Hasher> groups;
  for (const auto& file : files) {
    const auto slash = file.path.find('/');
    auto& group = groups[slash == std::string::npos ? "." : file.path.substr(0, slash + 1)];
    group.field(file.path).field(file.digest.hex()).field(file.executable ? "x" : "");
  }
  for (auto& [name, hasher] : groups) parts.push_back({code_prefix + name, hasher.finish().hex()});
  return parts;
}

bool replace_code(std::vector<KeyPart>& parts, const std::vector<KeyPart>& code) {
  const auto is_code = [](const KeyPart& part) { return part.name.starts_with(code_prefix); };
  const auto first = std::ranges::find_if(parts, is_code);
  const auto last = std::find_if_not(first, parts.end(), is_code);
  if (first == last || std::equal(first, last, code.begin(), code.end())) return false;
  parts.insert(parts.erase(first, last), code.begin(), code.end());
  return true;
}

const std::vector<KeyPart>& CodeParts::of(const std::vector<store::TreeEntry>& files) {
  const auto found = parts_.find(&files);
  if (found != parts_.end()) return found->second;
  std::vector<store::TreeFile> read;  // Kept in `parts_` only if every file can be read.
  read.reserve(files.size());
  for (const auto& file : files) {
    const bool executable = (std::filesystem::status(file.source).permissions() &
                             std::filesystem::perms::owner_exec) != std::filesystem::perms::none;
    read.push_back({file.relative_path, stats_.digest(file.source), executable});
    digest_notebook(read.back(), file.source);
  }
  return parts_.emplace(&files, code_parts(std::move(read))).first->second;
}

KeyPart ProgramParts::of(const ProgramStep& step) {
  if (!step.version.empty()) return {"program", "version " + step.version};
  auto found = digests_.find(step.program.get());
  if (found == digests_.end()) {
    core::Hasher hasher;
    hasher.field(stats_.digest(step.program->executable).hex());
    for (const auto& library : step.program->libraries)
      hasher.field(library.filename().string()).field(stats_.digest(library).hex());
    found = digests_.emplace(step.program.get(), hasher.finish().hex()).first;
  }
  return {"program", step.address.empty() ? found->second : found->second + "@" + step.address};
}

StringMap resolve_environment(const StepSpec& step) {
  StringMap values;
  for (const auto& [name, value] : step.environment) {
    if (value) {
      values[name] = *value;
    } else if (auto own = users_value(step, name)) {
      values[name] = std::move(*own);
    } else {
      throw core::EnvironmentError(
          "step '" + step.name + "' takes " + name +
              " from your environment, which has no such variable",
          {"export " + name +
           "=... before `pipe run`, write it into `.env` beside the pipeline "
           "file, or give it a value under `environment:`"});
    }
  }
  return values;
}

namespace {

/// Returns the file's bytes. If the file is a single line, as tokens are, its line end is removed.
std::string secret_in(const std::filesystem::path& file) {
  auto value = core::read_file(file);
  if (value.find('\0') != value.npos)
    throw core::EnvironmentError(
        "the secret file " + file.string() + " has a byte 0, which no variable can hold",
        {"store it as text, as by `base64`, and decode it in the step"});
  if (!value.empty() && value.find('\n') == value.size() - 1) {
    value.pop_back();
    if (value.ends_with('\r')) value.pop_back();
  }
  return value;
}

}  // namespace

StringMap resolve_secrets(const StepSpec& step) {
  StringMap values;
  for (const auto& secret : step.secrets) {
    if (secret.file) {
      try {
        values[secret.name] = secret_in(*secret.file);
      } catch (const core::EnvironmentError& error) {
        throw core::EnvironmentError(
            "step '" + step.name + "' needs the secret " + secret.name + ": " + error.what(),
            error.advice());
      }
    } else if (auto own = users_value(step, secret.name)) {
      values[secret.name] = std::move(*own);
    } else {
      throw core::EnvironmentError("step '" + step.name + "' needs the secret " + secret.name +
                                       ", which is not in your environment",
                                   {"export " + secret.name +
                                    "=..., write it into `.env` beside the pipeline file, or name "
                                    "a file: `secrets: [{name: " +
                                    secret.name + ", file: PATH}]`"});
    }
  }
  return values;
}

std::string text_of(const Template& text) {
  std::string result;
  for (const auto& part : text.parts) {
    if (const auto* literal = std::get_if<std::string>(&part)) {
      for (std::size_t i = 0; i < literal->size(); ++i)
        result +=
            (*literal)[i] == '$' && literal->substr(i + 1, 1) == "{" ? "$$" : literal->substr(i, 1);
    } else {
      const auto& reference = std::get<Template::Reference>(part);
      result.append("${")
          .append(placeholder_name(reference.placeholder))
          .append(reference.name)
          .append("}");
    }
  }
  return result;
}

std::vector<KeyPart> key_parts(const std::string& pipeline, const StepSpec& step,
                               const StringMap& environment, const std::vector<KeyPart>& code,
                               const std::string& environment_id) {
  std::vector<KeyPart> parts{{"pipeline", pipeline}, {"step", step.name}};
  std::string command;
  if (step.command.shell) {
    const auto& words = step.command.interpreter;
    command = words.empty() ? "bash or sh -e -c " : "";
    for (const auto& word : words) command += core::shell_quote(word) + " ";
  }
  for (const auto& argument : step.command.arguments)
    command += (command.empty() || step.command.shell ? "" : " ") + text_of(argument);
  parts.push_back({"command", short_text(command)});
  if (!step.command.shell) {  // The boundaries between arguments are part of the key.
    core::Hasher hasher;
    for (const auto& argument : step.command.arguments) hasher.field(text_of(argument));
    parts.push_back({"arguments", hasher.finish().hex()});
  }
  parts.insert(parts.end(), code.begin(), code.end());
  parts.push_back({"image", environment_id});
  for (const auto& [name, value] : step.parameters) {
    // A number is in the key as the user wrote it (3.10), because a command gets that text. The
    // path of the value itself is empty.
    const bool is_written = value.written && value.written->contains("");
    parts.push_back(
        {"parameter " + name, short_text(is_written ? value.written->at("") : value->dump())});
    if (!value.written || is_written) continue;
    for (const auto& [path, text] : *value.written)
      parts.push_back({"parameter " + name + "." + path, short_text(text)});
  }
  if (const auto gpus = settings::gpu_request(step.settings->resources); gpus.wanted())
    parts.push_back({"gpus", text_of(gpus)});
  if (step.nodes) {
    const auto processes = step.nodes.processes;
    parts.push_back({"nodes", std::to_string(step.nodes.count)});
    parts.push_back({"processes", processes == per_gpu ? "gpus" : std::to_string(processes)});
  }
  for (const auto& output : step.outputs)
    parts.push_back({"output " + output.name,
                     output.file_name + (output.from_all_nodes ? " of all nodes" : "")});
  for (const auto& [name, value] : environment)
    parts.push_back({"variable " + name, core::sha256(value).hex()});
  for (const auto& secret : step.secrets) parts.push_back({"secret " + secret.name, ""});
  for (const auto& [name, service] : step.services)
    std::ranges::move(service_parts(name, service), std::back_inserter(parts));
  if (!step.cache_until.empty()) parts.push_back({"cache until", short_text(step.cache_until)});
  if (!step.version.empty()) parts.push_back({"version", short_text(step.version)});
  return parts;
}

KeyPart input_part(const InputSpec& input, const std::string& content) {
  return {"input " + input.name, content, input.gathered ? "" : input.sources.at(0).step};
}

std::string key_of(const std::vector<KeyPart>& parts) {
  core::Hasher hasher;
  hasher.field("pipe step key 1");
  for (const auto& part : parts) hasher.field(part.name).field(part.value);
  return hasher.finish().hex();
}

std::vector<std::string> differences(const std::vector<KeyPart>& before,
                                     const std::vector<KeyPart>& now) {
  std::map<std::string, const KeyPart*> old;
  for (const auto& part : before) old[part.name] = &part;
  std::vector<std::string> lines;
  bool command_changed = false;
  for (const auto& part : now) {
    const auto known = old.find(part.name);
    if (known == old.end()) {
      lines.push_back("new " + part.name);
    } else {
      const auto& earlier = *known->second;
      if (earlier.value != part.value) {
        command_changed |= part.name == "command";
        const bool is_described = part.name == "image" && !earlier.producer.empty() &&
                                  earlier.producer != part.producer && !part.producer.empty();
        if (part.name == "arguments" && command_changed) {
          // The line about the command shows the change already.
        } else if (has_readable_value(part.name)) {
          lines.push_back(part.name + ": " + earlier.value + " -> " + part.value);
        } else if (is_described) {
          lines.push_back("image: " + earlier.producer + " -> " + part.producer);
        } else {
          lines.push_back(part.name + " changed");
        }
      }
      old.erase(known);
    }
  }
  for (const auto& [name, value] : old) lines.push_back(name + " removed");
  return lines;
}

}  // namespace pipeline::engine

#include "orchestrators/processes/host_environments.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include "core/bounded_json.hpp"
#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/project.hpp"
#include "orchestrators/processes/failure.hpp"
#include "orchestrators/processes/requirement_files.hpp"
#include "orchestrators/processes/step_variables.hpp"
#include "python_packages/unknown_requirements.hpp"
#include "settings/accelerator.hpp"

namespace pipeline::orchestrators::processes {
namespace {

namespace fs = std::filesystem;

/// Returns true for a program that each virtual environment has.
bool comes_with_environment(const std::string& program) {
  return program.starts_with("python") || program.starts_with("pip");
}

/// Returns true for a command that bash executes where PATH has bash, and sh elsewhere.
bool depends_on_bash(const StepSpec& step) {
  return step.command.shell && step.command.interpreter.empty();
}

/// Returns the step's key in `known_`. Steps with equal keys share a host context, so that 10,000
/// steps with the same settings are looked at once. The text is cheaper to compose than the
/// settings' JSON.
std::string host_key(const StepSpec& step, const std::string& path,
                     const std::vector<std::string>& programs,
                     const std::vector<std::string>& notices) {
  const auto& settings = step.settings->docker;
  std::string key = path;
  const auto add = [&](const std::string& text) { (key += '\0') += text; };
  const auto add_all = [&](const auto& list) {
    for (const auto& text : list) add(text);
    key += '\1';
  };
  add_all(programs);
  add_all(notices);
  if (depends_on_bash(step)) key += '\2';
  for (const auto* variables : {&settings.environment, &settings.runtime_environment}) {
    for (const auto& [name, value] : *variables) add(name), add(value);
    key += '\1';
  }
  if (!VirtualEnvironments::wanted(settings)) return key;
  add_all(settings.requirements.items());
  add_all(settings.pyproject_export_command.items());
  for (const auto& [name, value] : settings.python_package_installer_args)
    add(name), add(value->dump());
  add(settings.parent_image.value_or(""));
  add(settings.pyproject_path.value_or(""));
  add(settings.local_project_install_command.value_or(""));
  if (settings.local_project_install_command) {
    add(step.code_root->string());
    add_all(step.code->items());
  }
  add(settings.replicate_local_python_environment.value_or(false) ? "replicate" : "");
  add(!settings.python_package_installer                           ? ""
      : *settings.python_package_installer == PackageInstaller::uv ? "uv"
                                                                   : "pip");
  return key;
}

/// Adds the variables to the digest. Adds nothing if there are none, so that steps without
/// variables keep the keys that earlier versions of `pipe` gave them.
void add_variables(std::string_view kind, const StringMap& variables, core::Hasher& hasher) {
  if (variables.empty()) return;
  hasher.field(kind);
  for (const auto& [name, value] : variables) hasher.field(name).field(value);
}

}  // namespace

HostEnvironments::HostEnvironments(asio::io_context& loop, ProcessReaper& reaper,
                                   const OrchestratorOptions& options,
                                   const Capabilities& capabilities, PythonFolder python_folder)
    : capabilities_(capabilities),
      python_folder_(std::move(python_folder)),
      root_(options.root),
      lock_(options.lock),
      environments_(loop, reaper, options) {}

Programs& HostEnvironments::programs(const std::string& path) {
  return programs_.try_emplace(path, path, root_).first->second;
}

HostContext& HostEnvironments::host(const StepSpec& step) {
  const auto names = step.program ? std::vector<std::string>() : programs_of(step.command);
  const auto path = path_of(step);
  auto notices = ignored_settings(step.settings, capabilities_);
  constexpr const char* gpus = "CUDA_VISIBLE_DEVICES";
  if (settings::gpu_request(step.settings->resources).wanted() && sets_variable(step, gpus))
    notices.push_back(
        std::string(gpus) +
        " of the step has no effect: the step gets the GPUs that are reserved for it; "
        "`resources.gpus` names them, and `resources.gpu_ids: index` gives their "
        "indices");
  auto [entry, is_new] = known_.try_emplace(host_key(step, path, names, notices));
  if (!is_new) return entry->second;
  try {
    entry->second.notices = std::move(notices);
    fill_in(entry->second, step, path, names);
  } catch (...) {
    known_.erase(entry);
    throw;
  }
  return entry->second;
}

/// Fills in the host context of a step.
/// @param names the programs that the step's command names
void HostEnvironments::fill_in(HostContext& host, const StepSpec& step, const std::string& path,
                               const std::vector<std::string>& names) {
  const auto& settings = step.settings->docker;
  const bool has_environment = VirtualEnvironments::wanted(settings);
  auto& on_path = programs(path);
  utsname machine{};
  uname(&machine);
  core::Hasher hasher;
  hasher.field("local").field(machine.sysname).field(machine.machine);
  host.fingerprint = nlohmann::json::object();
  if (const char* callers_path = std::getenv("PATH"); !callers_path || callers_path != path)
    host.fingerprint["path"] = path;
  std::string python;
  for (const auto& name : names) {
    if (has_environment && comes_with_environment(name)) continue;
    const auto& program = on_path.find(name);
    hasher.field(name).field(program.identity);
    host.fingerprint["programs"][name] = program.identity;
    if (name.starts_with('/')) host.programs.emplace_back(name);
    if (name.starts_with("python") && !program.file.empty())
      python = program.version.empty() ? "Python" : "Python " + program.version;
  }
  if (depends_on_bash(step)) {
    const auto& bash = on_path.find("bash");
    hasher.field("shell").field(bash.file.empty() ? "sh" : "bash");
    host.fingerprint["programs"]["bash"] = bash.identity;
  }
  // A virtual environment's digest covers the variables of `environment` already.
  if (!has_environment) add_variables("variables", settings.environment, hasher);
  add_variables("runtime variables", settings.runtime_environment, hasher);
  host.identity = hasher.finish().hex();
  auto& environment = host.environment;
  environment.id = host.identity;
  environment.ready = true;
  environment.notices = host.notices;
  environment.description =
      python.empty() ? "processes of this machine" : python + " of this machine";
  if (!has_environment) {
    environment.fingerprint = host.fingerprint.dump();
    return;
  }
  host.plan = environments_.plan(step, on_path);
  const auto& plan = *host.plan;
  if (const auto image = python_of_image(settings.parent_image.value_or(""));
      image && !plan.python.version.empty() &&
      !(plan.python.version + ".").starts_with(*image + "."))
    host.notices.push_back("the virtual environments have Python " + plan.python.version +
                           ", the one of this machine; parent_image " + *settings.parent_image +
                           " has " + *image);
  for (const auto& name : plan.looked_up)
    host.fingerprint["programs"][name] = on_path.find(name).identity;
  describe(host);
}

/// Fills in what follows from the plan of the virtual environment.
void HostEnvironments::describe(HostContext& host) const {
  const auto& plan = *host.plan;
  auto& environment = host.environment;
  const auto python = plan.python.version.empty() ? "Python" : "Python " + plan.python.version;
  environment.resolves = plan.resolves;
  if (plan.request) environment.requirements = plan.request->requirements;
  environment.notices = host.notices;
  environment.notices.insert(environment.notices.end(), plan.notices.begin(), plan.notices.end());
  if (plan.digest.empty()) {
    environment.id.clear();
    environment.description = python + ", virtual environment with " + plan.summary();
    const auto unknown = python_packages::unknown_reason(plan.asked);
    environment.reason = !unknown.empty()
                             ? "not known until it runs: " + unknown
                             : "its requirements are not in " + lock_->path().filename().string() +
                                   ": they are resolved first";
    return;
  }
  environment.id = core::Hasher().field(host.identity).field(plan.digest).finish().hex();
  environment.description = python + ", virtual environment " + plan.digest.substr(0, 12);
  auto fingerprint = host.fingerprint;
  fingerprint["environment"] = plan.digest;
  if (plan.by_name) environment.fingerprint = fingerprint.dump();
}

async::Task<Environment> HostEnvironments::environment(const StepSpec& step) {
  auto& found = host(step);
  if (found.plan) {
    if (found.plan->digest.empty() && python_packages::unknown_reason(found.plan->asked).empty()) {
      environments_.look_up(*found.plan);
      describe(found);
    }
    const bool is_ready = environments_.ready(found.plan->digest);
    if (!is_ready && !found.plan->digest.empty())
      found.environment.reason = environments_.reason_to_make(*found.plan);
    found.environment.ready = is_ready;
  }
  co_return found.environment;
}

async::Task<> HostEnvironments::lock(const StepSpec& step, EventSink& events,
                                     core::CancelSource& cancel) {
  auto& found = host(step);
  if (!found.plan) co_return;
  const auto unknown = core::only_looks() ? unknown_to_look(found.plan->asked) : std::string();
  if (!unknown.empty()) {
    events.emit(event::Notice{step.name, "its packages are not known until it runs: " + unknown});
    if (lock_) lock_->keep_all_environments();
  }
  if (found.plan->is_resolved() || !unknown.empty()) co_return;
  co_await environments_.resolve(*found.plan, step.name, events, cancel);
  describe(found);
}

async::Task<std::string> HostEnvironments::packages(const StepSpec& step) {
  const auto& found = host(step);
  co_return found.plan ? environments_.packages(found.plan->digest) : std::string();
}

async::Task<bool> HostEnvironments::matches(std::string fingerprint) {
  auto seen = core::parse_json(fingerprint);
  if (!seen.is_object()) co_return false;
  const char* callers_path = std::getenv("PATH");
  auto& on_path =
      programs(seen.value("path", callers_path ? callers_path : std::string(default_path)));
  if (auto names = seen.find("programs"); names != seen.end())
    for (auto& [name, identity] : names->items())
      if (nlohmann::json(on_path.find(name).identity) != identity) co_return false;
  co_return !seen.contains("environment") || environments_.ready(seen["environment"]);
}

async::Task<Environment> HostEnvironments::prepare(const StepSpec& step, EventSink& events,
                                                   core::CancelSource& cancel) {
  co_await lock(step, events, cancel);
  auto& found = host(step);
  if (found.plan && !environments_.ready(found.plan->digest))
    co_await environments_.make(*found.plan, step.name, events, cancel);
  co_return co_await environment(step);
}

StringMap HostEnvironments::variables(const AttemptSpec& attempt, const Layout& layout,
                                      const fs::path& temporary, const HostContext& host) {
  auto variables = passed_on_variables();
  variables.try_emplace("PATH", default_path);
  variables["TMPDIR"] = temporary.string();
  variables["PYTHONUNBUFFERED"] = "1";  // Python would write to a pipe in blocks.
  for (auto& [name, value] : attempt.step.settings->docker.environment) variables[name] = value;
  for (auto& [name, value] : variables_of(attempt, layout)) variables[name] = value;
  auto& path = variables["PATH"];
  if (host.plan) {
    auto folder = environments_.folder(host.plan->digest);
    variables["VIRTUAL_ENV"] = folder.string();
    path.insert(0, (folder / "bin").string() + ":");
  } else if (find_program("python", path).empty()) {
    // Images of Python have a program `python`; Debian has only `python3`.
    if (auto python3 = find_program("python3", path); !python3.empty())
      path.insert(0, python_folder_(python3).string() + ":");
  }
  return variables;
}

std::vector<std::string> HostEnvironments::command(const AttemptSpec& attempt, Layout layout) {
  layout.has_bash = !programs(path_of(attempt.step)).find("bash").file.empty();
  return command_of(attempt, layout);
}

void HostEnvironments::require_ready(const HostContext& host) const {
  if (!host.plan || environments_.ready(host.plan->digest)) return;
  throw core::EnvironmentError("the virtual environment " +
                                   environments_.folder(host.plan->digest).string() +
                                   " has been removed since it was made",
                               {"run again: `pipe` makes the environment anew"});
}

}  // namespace pipeline::orchestrators::processes

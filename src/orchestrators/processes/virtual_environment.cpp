#include "orchestrators/processes/virtual_environment.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "core/address.hpp"
#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/project.hpp"
#include "core/user_environment.hpp"
#include "docker/context.hpp"
#include "docker/package_lock.hpp"
#include "docker/package_resolver.hpp"
#include "orchestrators/cache_folder.hpp"
#include "orchestrators/processes/environment_packages.hpp"
#include "orchestrators/processes/environment_use.hpp"
#include "orchestrators/processes/file_lock.hpp"
#include "orchestrators/processes/installer.hpp"
#include "python_packages/unknown_requirements.hpp"

namespace pipeline::orchestrators::processes {
namespace {

namespace fs = std::filesystem;

/// Returns the Python of new virtual environments: the parent image's version if this machine has
/// it, else the user's default.
const FoundProgram& python_for(const StepSpec& step, Programs& programs,
                               std::vector<std::string>& looked_up) {
  auto& own = programs.find("python3");
  looked_up.push_back("python3");
  if (auto& image = step.settings->docker.parent_image) {
    auto version = python_of_image(*image);
    if (version && !(own.version + ".").starts_with(*version + ".")) {
      looked_up.push_back("python" + *version);
      if (auto& other = programs.find("python" + *version);
          !other.file.empty() && other.file.parent_path().filename() != "shims")
        return other;
    }
  }
  if (!own.file.empty()) return own;
  auto& python = programs.find("python");
  looked_up.push_back("python");
  if (python.file.empty())
    throw core::EnvironmentError(
        "step '" + step.name + "' has Python requirements, but PATH has no python3",
        {"install Python (Debian: apt install python3 python3-venv)",
         "or run with `--orchestrator docker`, which needs none"});
  return python;
}

/// Returns the program that may be executed to learn about a Python. A command that only looks
/// (`pipe plan`) must not execute files of the project; for a virtual environment in the project,
/// returns the Python that it was made from. Empty if there is none outside of the project.
fs::path program_to_look_at(const fs::path& python) {
  if (!core::only_looks() || !core::is_in_project(python)) return python;
  std::error_code error;
  auto real = fs::canonical(python, error);
  const bool is_python = real.filename().string().starts_with("python");
  return error || !is_python || core::is_in_project(real) ? fs::path() : real;
}

void add_files(core::Hasher& hasher, const std::vector<file_tree::ContextFile>& files) {
  for (const auto& file : files) {
    if (file.kind == docker::ContextFile::Kind::directory) continue;
    hasher.field(file.path)
        .field(std::to_string(file.mode))
        .field(file.content ? *file.content : core::sha256_file(file.source).hex());
  }
}

/// Adds the locked packages, which determine the environment, and leaves out the requirements and
/// the indexes.
void add_locked(core::Hasher& hasher, const EnvironmentPlan& plan, const fs::path& root,
                const fs::path& state) {
  hasher.field("locked").field(lockfile::digest(*plan.locked)).field(plan.asked.installer);
  for (const auto& option : plan.asked.arguments)
    if (!python_packages::is_index_option(option)) hasher.field("option").field(option);
  // A lock file has no hash of a folder; one of an earlier version has no hash of a local file.
  for (const auto& package : plan.locked->packages) {
    if (package.origin != lockfile::PackageOrigin::path || !package.sha256.empty()) continue;
    const auto source = root / package.url;
    if (fs::is_directory(source))
      add_files(hasher, docker::package_files(source, state));
    else
      hasher.field(core::sha256_file(source).hex());
  }
}

void add_asked(core::Hasher& hasher, const EnvironmentPlan& plan, const fs::path& root) {
  const auto& asked = plan.asked;
  hasher.field(asked.installer);
  for (const auto& line : docker::locked_lines(asked, root)) hasher.field(line);
  // locked_lines() has addresses without their login; here, the login counts.
  for (const auto& line : asked.requirements) hasher.field("requirement").field(line);
  for (const auto& option : asked.arguments) hasher.field("option").field(option);
}

/// Returns true if requirements name files, which can change while the requirements do not.
bool names_files(const std::vector<std::string>& requirements, const fs::path& root) {
  return std::ranges::any_of(requirements, [&](const std::string& line) {
    std::error_code error;
    if (line.starts_with('-')) return !python_packages::is_index_option(line);
    return line.find("file:") != line.npos || fs::exists(root / line, error);
  });
}

std::string digest_of(const EnvironmentPlan& plan, const fs::path& root, const fs::path& state) {
  core::Hasher hasher;
  utsname machine{};
  uname(&machine);
  hasher.field("pipe venv 2")
      .field(plan.python.identity)
      .field(machine.sysname)
      .field(machine.machine);
  if (plan.locked)
    add_locked(hasher, plan, root, state);
  else
    add_asked(hasher, plan, root);
  for (auto& [name, value] : plan.asked.environment)
    hasher.field("variable").field(name).field(value);
  if (!plan.project_command.empty()) hasher.field("project").field(plan.project_command);
  add_files(hasher, plan.project);
  return hasher.finish().hex();
}

}  // namespace

std::string EnvironmentPlan::summary() const {
  std::vector<std::string> parts;
  for (const auto& line : asked.requirements)
    if (line.starts_with("# "))
      parts.push_back("packages " + line.substr(2));
    else if (!line.starts_with('-'))
      parts.push_back(core::without_credentials(line));
  if (!asked.pyproject.empty()) parts.emplace_back("pyproject.toml");
  if (!project_command.empty()) parts.push_back("`" + project_command + "`");
  std::string text;
  for (std::size_t i = 0; i < parts.size() && i < 4; ++i) text += (i ? ", " : "") + parts[i];
  if (parts.size() > 4) text += " and " + std::to_string(parts.size() - 4) + " more";
  return text.empty() ? "no packages" : text;
}

VirtualEnvironments::VirtualEnvironments(asio::io_context& loop, ProcessReaper& reaper,
                                         const OrchestratorOptions& options)
    : reaper_(reaper),
      root_(options.root),
      state_(options.state),
      cache_(cache_folder()),
      template_dir_(options.template_dir),
      lock_(options.lock),
      resolutions_(loop),
      made_(loop) {}

VirtualEnvironments::~VirtualEnvironments() = default;

bool VirtualEnvironments::wanted(const DockerSettings& settings) {
  return !settings.requirements.items().empty() || settings.pyproject_path ||
         settings.replicate_local_python_environment.value_or(false) ||
         settings.local_project_install_command;
}

EnvironmentPlan VirtualEnvironments::plan(const StepSpec& step, Programs& programs) {
  auto& settings = step.settings->docker;
  EnvironmentPlan plan;
  plan.python = python_for(step, programs, plan.looked_up);
  plan.python.file = fs::absolute(plan.python.file);  // Tools work in another folder.
  if (auto file = program_to_look_at(plan.python.file); !file.empty()) plan.python.file = file;
  plan.asked = python_packages::python_requirements(settings, root_, plan.notices);
  if (!python_packages::unknown_reason(plan.asked).empty()) return plan;
  plan.resolves = python_packages::resolves(plan.asked.requirements) ||
                  !plan.asked.pyproject.empty() || settings.local_project_install_command;
  if (settings.local_project_install_command) {
    plan.project_command = *settings.local_project_install_command;
    plan.project = docker::project_files(step.code_root.empty() ? root_ : *step.code_root,
                                         step.code->items(), state_);
    if (lock_)  // The lock lists the packages that are installed beside the project.
      std::erase_if(plan.project, [&](const auto& file) { return file.source == lock_->path(); });
  }
  plan.by_name = !settings.pyproject_path && !settings.local_project_install_command &&
                 !settings.replicate_local_python_environment.value_or(false) &&
                 !names_files(plan.asked.requirements, root_);
  add_request(plan);
  look_up(plan);
  return plan;
}

void VirtualEnvironments::add_request(EnvironmentPlan& plan) {
  if (!lock_ || plan.asked.empty()) return;
  if (const auto reason = docker::obstacle_to_lock(plan.asked); !reason.empty()) {
    plan.notices.push_back(docker::unlocked_notice(reason));
    return;
  }
  auto facts = facts_.find(plan.python.identity);
  if (facts == facts_.end()) {
    if (program_to_look_at(plan.python.file).empty()) {
      python_packages::mark_unknown(plan.asked, plan.python.file.string() + " is in the project");
      return;
    }
    facts = facts_.emplace(plan.python.identity, read_python_facts(plan.python.file)).first;
  }
  lockfile::LockRequest request;
  request.parent = lockfile::local_parent;
  request.tag = facts->second.tag;
  request.platform = facts->second.platform;
  request.installer = plan.asked.installer;
  request.requirements = docker::locked_lines(plan.asked, root_);
  plan.request = std::move(request);
  plan.resolves = !plan.project_command.empty();
}

void VirtualEnvironments::look_up(EnvironmentPlan& plan) const {
  if (plan.request)
    if (auto found = lock_->find(*plan.request)) {
      if (auto notice = lockfile::notice_of_sources(*found); !notice.empty())
        plan.notices.push_back(std::move(notice));
      plan.locked = std::make_shared<const lockfile::LockedEnvironment>(std::move(*found));
    }
  plan.digest = plan.is_resolved() && python_packages::unknown_reason(plan.asked).empty()
                    ? digest_of(plan, root_, state_)
                    : std::string();
}

async::Task<> VirtualEnvironments::resolve(EnvironmentPlan& plan, const std::string& step,
                                           EventSink& events, core::CancelSource& cancel) {
  const auto name =
      "packages for Python " + facts_.at(plan.python.identity).version + " of this machine";
  const docker::Resolve run = [&](lockfile::LockedEnvironment preferred, bool refresh,
                                  std::function<void(const std::string&)> on_line) {
    return resolve_in_process(plan, std::move(preferred), refresh, std::move(on_line), cancel);
  };
  const std::function<async::Task<std::string>()> make = [&]() -> async::Task<std::string> {
    std::string reason;
    try {
      co_await docker::lock_packages(*lock_, *plan.request, name, step, run, events, cancel);
    } catch (const docker::CannotResolve& unable) {
      reason = docker::unlocked_notice(unable.what());
    }
    co_return reason;
  };
  std::string key = plan.python.identity + plan.request->installer;
  for (const auto& line : plan.request->requirements) key += '\n' + line;
  const auto reason = co_await resolutions_.get(key, make, &cancel);
  if (!reason.empty()) {
    plan.request.reset();
    plan.resolves = true;
    plan.notices.push_back(reason);
  }
  plan.is_fresh = true;
  look_up(plan);
}

async::Task<lockfile::LockedEnvironment> VirtualEnvironments::resolve_in_process(
    const EnvironmentPlan& plan, lockfile::LockedEnvironment preferred, bool refresh,
    std::function<void(const std::string&)> on_line, core::CancelSource& cancel) {
  InstallerFolders folders;
  folders.cache = cache_;
  folders.root = root_;
  folders.templates = template_dir_;
  Installer installer(plan, std::move(folders), reaper_, cancel, std::move(on_line));
  co_return co_await installer.resolve(std::move(preferred), refresh);
}

bool VirtualEnvironments::ready(const std::string& digest) const {
  if (digest.empty()) return false;
  auto made = folder(digest);
  // The interpreter is a link: an upgrade of the machine's Python may have removed it.
  return access((made / ".complete").c_str(), F_OK) == 0 &&
         access((made / "bin/python").c_str(), X_OK) == 0;
}

std::string VirtualEnvironments::reason_to_make(const EnvironmentPlan& plan) const {
  auto reason = "virtual environment with " + plan.summary();
  if (plan.locked) reason += ": " + describe_new_environment(environments_folder(), *plan.locked);
  return reason;
}

std::string VirtualEnvironments::packages(const std::string& digest) const {
  std::set<std::string> installed;
  const auto made = folder(digest);
  for (const auto* library : {"lib", "lib64"}) {
    std::error_code error;
    for (const auto& python : fs::directory_iterator(made / library, error))
      for (const auto& entry : fs::directory_iterator(python.path() / "site-packages", error)) {
        const auto name = entry.path().filename().string();
        if (!name.ends_with(".dist-info") && !name.ends_with(".egg-info")) continue;
        // The commit of a package from a repository can change while its version stays the same.
        const auto origin = entry.path() / "direct_url.json";
        installed.insert(name + (fs::exists(origin) ? " " + core::read_file(origin) : ""));
      }
  }
  core::Hasher hasher;
  for (const auto& each : installed) hasher.field(each);
  return hasher.finish().hex();
}

async::Task<> VirtualEnvironments::make(const EnvironmentPlan& plan, const std::string& step,
                                        EventSink& events, core::CancelSource& cancel) {
  // Another process may have removed an environment that this process has made.
  if (made_.find(plan.digest) && !ready(plan.digest)) made_.forget(plan.digest);
  const std::function<async::Task<bool>()> work = [&]() -> async::Task<bool> {
    co_await make_locked(plan, step, events, cancel);
    co_return true;
  };
  co_await made_.get(plan.digest, work, &cancel);
}

async::Task<> VirtualEnvironments::make_locked(const EnvironmentPlan& plan, const std::string& step,
                                               EventSink& events, core::CancelSource& cancel) {
  auto target = folder(plan.digest);
  core::make_folders(target.parent_path());
  auto lock = co_await take_lock(
      target.string() + ".lock",
      [&] {
        events.emit(event::Notice{
            step, "waiting for another `pipe`, which is making the same virtual environment (" +
                      plan.summary() + ")"});
      },
      cancel);
  if (ready(plan.digest)) co_return;
  core::remove_tree(target);

  auto name = "environment " + plan.digest.substr(0, 12);
  auto begin = std::chrono::steady_clock::now();
  auto took = [&] {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                                 begin);
  };
  events.emit(event::BuildStarted{name, {step}, reason_to_make(plan)});
  std::exception_ptr error;
  Failure failure{FailureKind::build, {}, {}, {}};
  try {
    InstallerFolders folders{target, cache_, root_, template_dir_};
    Installer installer(plan, std::move(folders), reaper_, cancel, [&](std::string line) {
      events.emit(event::BuildProgress{name, std::move(line)});
    });
    co_await installer.install();
    if (plan.locked) write_packages(target, *plan.locked);
    // After a power failure, `.complete` must not exist without the complete files.
    core::sync_file_system(target);
    core::write_file_atomically(target / ".complete", plan.summary() + "\n");
  } catch (const core::BuildError& failed) {
    error = std::current_exception();
    failure = {FailureKind::build, failed.what(), failed.advice(), failed.details()};
  } catch (const core::EnvironmentError& failed) {
    error = std::current_exception();
    failure = {
        cancel.level() == core::StopLevel::none ? FailureKind::environment : FailureKind::cancelled,
        failed.what(),
        failed.advice(),
        {}};
  }
  if (!error) {
    events.emit(event::BuildFinished{name, plan.digest, took(), {}});
    co_return;
  }
  try {
    core::remove_tree(target);
    // Without its mark the environment is not used; the next process that creates it removes it.
  } catch (const core::EnvironmentError&) {
  }
  events.emit(event::BuildFinished{name, {}, took(), failure});
  std::rethrow_exception(error);
}

StringMap caller_variables() {
  StringMap variables;
  for (const std::string_view text : core::tool_environment()) {
    if (auto equals = text.find('='); equals != text.npos && equals > 0)
      variables[std::string(text.substr(0, equals))] = text.substr(equals + 1);
  }
  return variables;
}

}  // namespace pipeline::orchestrators::processes

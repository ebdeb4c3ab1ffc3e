#include "orchestrators/local/virtual_environment.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <set>

#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/user_environment.hpp"
#include "docker/context.hpp"
#include "docker/requirements.hpp"
#include "orchestrators/local/installer.hpp"

namespace pipeline::orchestrators {
namespace {

namespace fs = std::filesystem;

/// Returns the Python of new virtual environments: the parent image's version if this machine has
/// it, else the user's default.
const Program& python_for(const StepSpec& step, Programs& programs,
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

std::string digest_of(EnvironmentPlan& plan, const fs::path& root) {
  core::Hasher hasher;
  utsname machine{};
  uname(&machine);
  hasher.field("pipe venv 1")
      .field(plan.python.identity)
      .field(machine.sysname)
      .field(machine.machine);
  hasher.field(plan.installer == PackageInstaller::uv ? "uv" : "pip");
  for (auto& line : plan.requirements) {
    hasher.field("requirement").field(line);
    // A local wheel or folder: a changed one under the same name is another environment.
    struct stat info;
    if (line.starts_with('-'))
      plan.by_name = plan.by_name &&
                     (line.starts_with("--index-url") || line.starts_with("--extra-index-url"));
    else if (stat((root / line).c_str(), &info) == 0) {
      plan.by_name = false;
      hasher.field(std::to_string(info.st_size))
          .field(std::to_string(info.st_mtim.tv_sec))
          .field(std::to_string(info.st_mtim.tv_nsec));
    }
  }
  for (auto& option : plan.installer_options) hasher.field("option").field(option);
  if (!plan.pyproject.empty()) hasher.field("pyproject").field(core::read_file(plan.pyproject));
  for (auto& [name, value] : plan.variables) hasher.field("variable").field(name).field(value);
  if (!plan.project_command.empty()) hasher.field("project").field(plan.project_command);
  for (auto& file : plan.project) {
    if (file.kind == docker::ContextFile::Kind::directory) continue;
    hasher.field(file.path)
        .field(std::to_string(file.mode))
        .field(file.content ? *file.content : core::sha256_file(file.source).hex());
  }
  return hasher.finish().hex();
}

}  // namespace

std::string EnvironmentPlan::summary() const {
  std::vector<std::string> parts;
  for (auto& line : requirements)
    if (!line.starts_with('-')) parts.push_back(line);
  if (!pyproject.empty()) parts.push_back(pyproject.filename().string());
  if (!project_command.empty()) parts.push_back("`" + project_command + "`");
  std::string text;
  for (std::size_t i = 0; i < parts.size() && i < 4; ++i) text += (i ? ", " : "") + parts[i];
  if (parts.size() > 4) text += " and " + std::to_string(parts.size() - 4) + " more";
  return text.empty() ? "no packages" : text;
}

VirtualEnvironments::VirtualEnvironments(asio::io_context& loop, ProcessReaper& reaper,
                                         fs::path root)
    : loop_(loop), reaper_(reaper), root_(std::move(root)), cache_(cache_folder()) {}

VirtualEnvironments::~VirtualEnvironments() = default;

bool VirtualEnvironments::wanted(const DockerSettings& settings) {
  return !settings.requirements.items().empty() || settings.pyproject_path ||
         settings.replicate_local_python_environment.value_or(false) ||
         settings.local_project_install_command;
}

EnvironmentPlan VirtualEnvironments::plan(const StepSpec& step, Programs& programs) const {
  auto& settings = step.settings->docker;
  EnvironmentPlan plan;
  plan.python = python_for(step, programs, plan.looked_up);
  if (!settings.python_package_installer) plan.looked_up.push_back("uv");
  auto usual = programs.find("uv").file.empty() ? PackageInstaller::pip : PackageInstaller::uv;
  plan.installer = settings.python_package_installer.value_or(usual);
  plan.requirements = docker::requirement_lines(settings, root_, plan.notices);
  plan.resolves = docker::resolves(plan.requirements) || settings.local_project_install_command;
  plan.installer_options = docker::installer_arguments(settings.python_package_installer_args);
  if (settings.pyproject_path && !settings.pyproject_export_command.has_value())
    plan.pyproject = root_ / *settings.pyproject_path, plan.resolves = true;
  if (settings.local_project_install_command) {
    plan.project_command = *settings.local_project_install_command;
    plan.project = docker::project_files(root_, step.code.items());
  }
  plan.variables = settings.environment;
  plan.by_name = !settings.pyproject_path && !settings.local_project_install_command &&
                 !settings.replicate_local_python_environment.value_or(false);
  plan.digest = digest_of(plan, root_);
  return plan;
}

bool VirtualEnvironments::ready(const std::string& digest) const {
  auto made = folder(digest);
  // The interpreter is a link: an upgrade of the machine's Python may have removed it.
  return access((made / ".complete").c_str(), F_OK) == 0 &&
         access((made / "bin/python").c_str(), X_OK) == 0;
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
  auto [entry, is_first] = builds_.try_emplace(plan.digest);
  if (!is_first) {
    auto& build = *entry->second;
    co_await build.done.wait();
    if (build.error) std::rethrow_exception(build.error);
    if (ready(plan.digest)) co_return;
    entry = builds_.find(plan.digest);  // Another process has removed it since.
  }
  entry->second = std::make_unique<Build>(loop_.get_executor());
  auto& build = *entry->second;
  try {
    co_await make_locked(plan, step, events, cancel);
  } catch (...) {
    build.error = std::current_exception();
  }
  build.done.open();
  if (build.error) std::rethrow_exception(build.error);
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
  events.emit(event::BuildStarted{name, {step}, "virtual environment with " + plan.summary()});
  std::exception_ptr error;
  Failure failure{FailureKind::build, {}, {}, {}};
  try {
    Installer installer(plan, target, cache_, root_, reaper_, cancel, [&](std::string line) {
      events.emit(event::BuildProgress{name, std::move(line)});
    });
    co_await installer.install();
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
    // Without its mark the environment is not used, and the next process that creates it removes
    // it.
  } catch (const core::EnvironmentError&) {
  }
  events.emit(event::BuildFinished{name, {}, took(), failure});
  std::rethrow_exception(error);
}

fs::path cache_folder() {
  if (const auto own = core::variable("PIPE_CACHE_DIR"); !own.empty()) return fs::absolute(own);
  if (const auto shared = core::variable("XDG_CACHE_HOME"); !shared.empty())
    return fs::absolute(shared) / "pipe";
  if (const auto home = core::variable("HOME"); !home.empty())
    return fs::absolute(home) / ".cache" / "pipe";
  return fs::temp_directory_path() / ("pipe-cache-" + std::to_string(geteuid()));
}

StringMap caller_variables() {
  StringMap variables;
  for (char** entry = environ; *entry; ++entry) {
    std::string_view text(*entry);
    if (auto equals = text.find('='); equals != text.npos && equals > 0)
      variables[std::string(text.substr(0, equals))] = text.substr(equals + 1);
  }
  return variables;
}

}  // namespace pipeline::orchestrators

#include "docker/package_lock.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <set>

#include "core/address.hpp"
#include "core/digest.hpp"
#include "docker/build_log.hpp"
#include "docker/build_report.hpp"
#include "docker/package_resolver.hpp"

namespace pipeline::docker {
namespace {

namespace fs = std::filesystem;

/// Files of a project that have its requirements.
constexpr const char* project_files_with_requirements[] = {"pyproject.toml", "setup.cfg",
                                                           "setup.py"};

std::string short_digest(core::Hasher& hasher) { return hasher.finish().hex().substr(0, 12); }

/// Returns ` #` and a digest of the file.
std::string file_mark(const fs::path& file) {
  core::Hasher hasher;
  return " #" + short_digest(hasher.field(core::sha256_file(file).hex()));
}

/// Returns ` #` and a digest of the file from which an installer's option reads requirements or
/// constraints; an empty text for other options.
std::string option_mark(const std::string& option, const fs::path& root) {
  const auto equals = option.find('=');
  if (equals == std::string::npos) return {};
  const auto name = std::string_view(option).substr(0, equals);
  constexpr std::array of_file{"--override",    "--overrides",   "--constraint",
                               "--constraints", "--requirement", "--requirements"};
  const bool is_group = name == "--group" || name == "--only-group";
  if (!is_group && std::ranges::find(of_file, name) == of_file.end()) return {};
  const auto file = root / (is_group ? "pyproject.toml" : option.substr(equals + 1));
  std::error_code error;
  return fs::is_regular_file(file, error) ? file_mark(file) : std::string();
}

/// Returns ` #` and a digest for a requirement that is a file or folder; else an empty text.
std::string content_mark(const std::string& line, const fs::path& root) {
  const auto path = python_packages::local_path(line, root);
  if (!path) return {};
  const auto file = root / *path;
  std::error_code error;
  if (fs::is_regular_file(file, error)) return file_mark(file);
  core::Hasher hasher;
  if (python_packages::is_index_option(line)) {
    std::set<std::string> names;  // Several wheels of one name must have one hash.
    for (const auto& entry : fs::directory_iterator(file, error))
      names.insert(entry.path().filename().string());
    for (const auto& name : names) hasher.field(name);
  } else {
    std::set<std::string> names(std::begin(project_files_with_requirements),
                                std::end(project_files_with_requirements));
    for (const auto& entry : fs::directory_iterator(file, error))  // Files that `dynamic` may name.
      if (auto name = entry.path().filename().string(); name.starts_with("requirements"))
        names.insert(std::move(name));
    for (const auto& name : names)
      if (fs::is_regular_file(file / name, error))
        hasher.field(name).field(core::sha256_file(file / name).hex());
  }
  return " #" + short_digest(hasher);
}

}  // namespace

/// Finds a requirement whose address contains a login: a lock file must not contain credentials,
/// and the file cannot be fetched without them.
std::string obstacle_to_lock(const python_packages::PythonRequirements& python) {
  for (const auto& line : python.requirements)
    if (!line.starts_with('-') && core::without_credentials(line) != line)
      return "the address of '" + line.substr(0, line.find_first_of(" @[;")) + "' contains a login";
  return {};
}

std::string unlocked_notice(const std::string& reason) {
  return "the installation chooses the versions of the Python packages, as they cannot be "
         "locked: " +
         reason;
}

StepSpec without_packages(const StepSpec& step) {
  StepSpec system;
  system.name = step.name;
  system.line = step.line;
  system.settings = step.settings;
  auto& docker = system.settings->docker;
  docker.requirements = {};
  docker.replicate_local_python_environment.reset();
  docker.pyproject_path.reset();
  docker.pyproject_export_command = {};
  docker.local_project_install_command.reset();
  docker.environment.clear();
  docker.user.reset();
  docker.image_tag.reset();
  return system;
}

std::vector<std::string> locked_lines(const python_packages::PythonRequirements& python,
                                      const fs::path& root) {
  std::vector<std::string> lines;
  for (const auto& argument : python.arguments)
    lines.push_back(core::without_credentials(argument) + option_mark(argument, root));
  for (const auto& line : python.requirements)
    lines.push_back(core::without_credentials(line) + content_mark(line, root));
  for (const auto& constraint : python.constraints) lines.push_back("--constraint " + constraint);
  if (!python.pyproject.empty()) {
    core::Hasher hasher;
    lines.push_back("pyproject.toml #" + short_digest(hasher.field(python.pyproject)));
  }
  return lines;
}

lockfile::LockRequest PackageLock::request_of(const ImagePlan& plan,
                                              const std::string& parent_digest) const {
  lockfile::LockRequest request;
  request.parent = plan.parent ? std::string("dockerfile") : plan.parent_image;
  request.parent_digest = parent_digest;
  request.installer = plan.python.installer;
  request.requirements = locked_lines(plan.python, options_.root);
  return request;
}

std::string PackageLock::key_of(const ImagePlan& plan) const {
  auto key = (plan.parent ? plan.parent->dockerfile : plan.parent_image) + '\n' + plan.platform +
             '\n' + plan.python.installer;
  for (const auto& line : locked_lines(plan.python, options_.root)) key += '\n' + line;
  return key;
}

bool PackageLock::covers(ImagePlan& plan) const {
  if (!options_.lock || !plan.build || plan.python.empty()) return false;
  auto reason = obstacle_to_lock(plan.python);
  if (const auto found = unable_.find(key_of(plan)); found != unable_.end()) reason = found->second;
  if (reason.empty()) return true;
  plan.notices.push_back(unlocked_notice(reason));
  return false;
}

Locked PackageLock::find(const ImagePlan& plan, const std::string& parent_digest) const {
  auto found = options_.lock->find(request_of(plan, parent_digest));
  return found ? std::make_shared<const lockfile::LockedEnvironment>(std::move(*found)) : nullptr;
}

async::Task<> PackageLock::resolve(const ImagePlan& plan, ImageStatus parent,
                                   const std::string& step, EventSink& events,
                                   core::CancelSource& cancel) {
  auto request = request_of(plan, parent.digest);
  std::string key = parent.digest + request.installer;
  for (const auto& line : request.requirements) key += '\n' + line;
  co_await resolutions_.get(
      key, [&] { return resolve_once(plan, request, parent.image_id, step, events, cancel); },
      &cancel);
}

async::Task<> lock_packages(lockfile::LockFile& file, lockfile::LockRequest request,
                            std::string name, std::string step, Resolve resolve, EventSink& events,
                            core::CancelSource& cancel) {
  const std::function<void(const std::string&)> on_line = [&](const std::string& line) {
    events.emit(event::BuildProgress{name, line});
  };
  const auto& options = file.options();
  const bool refresh = options.upgrade_all || !options.upgrade.empty();
  std::exception_ptr unable;  // CannotResolve, which the events do not report as a failure.
  const auto work = [&]() -> async::Task<std::string> {
    try {
      auto environment = co_await resolve(file.preferred(request), refresh, on_line);
      const auto notice = file.put(request, std::move(environment));
      if (!notice.empty()) events.emit(event::Notice{step, notice});
      for (const auto& line : describe(file.changes().back())) on_line(line);
    } catch (const CannotResolve& reason) {
      on_line(reason.what());
      unable = std::current_exception();
    }
    co_return file.path().filename().string();
  };
  const BuildReport report{name, step, "the requirements are resolved"};
  co_await reported(work(), report, events, cancel);
  if (unable) std::rethrow_exception(unable);
}

async::Task<bool> PackageLock::resolve_once(const ImagePlan& plan, lockfile::LockRequest request,
                                            std::string image_id, std::string step,
                                            EventSink& events, core::CancelSource& cancel) {
  const Resolve resolve = [&](lockfile::LockedEnvironment preferred, bool refresh,
                              std::function<void(const std::string&)> on_line) {
    Resolution resolution{plan, image_id, std::move(preferred), refresh};
    resolution.labels["pipe.run"] = options_.run_id;
    resolution.labels["pipe.state"] = options_.owner;
    resolution.template_dir = options_.template_dir;
    resolution.root = options_.root;
    resolution.state = options_.state;
    return resolver_(std::move(resolution), std::move(on_line), cancel);
  };
  const auto name = "packages for " + request.parent;
  try {
    co_await lock_packages(*options_.lock, request, name, step, resolve, events, cancel);
  } catch (const CannotResolve& reason) {
    unable_[key_of(plan)] = reason.what();
  }
  co_return true;
}

}  // namespace pipeline::docker

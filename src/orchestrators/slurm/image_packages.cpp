#include "orchestrators/slurm/image_packages.hpp"

#include <algorithm>
#include <system_error>

#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "core/lines.hpp"
#include "core/text.hpp"
#include "docker/archived_parent.hpp"
#include "docker/image_identity.hpp"
#include "docker/package_layers.hpp"
#include "orchestrators/owner.hpp"
#include "orchestrators/slurm/shell_work.hpp"
#include "orchestrators/slurm/squashfs_files.hpp"
#include "python_packages/unknown_requirements.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

namespace fs = std::filesystem;
using docker::ContextFile;
using docker::text_file;
using nlohmann::json;

constexpr std::size_t max_printed = 4 << 20;  // Bytes.

/// Moves the folders that a build has beside /pipe into /pipe, the only folder that the container
/// has besides the image and /tmp.
std::string with_own_folders(std::string script) {
  script = core::replaced(std::move(script), "/pipe-tools", "/pipe/tools");
  return core::replaced(std::move(script), "/pipe-built", "/pipe/built");
}

void write_files(const fs::path& folder, const std::vector<ContextFile>& files) {
  for (const auto& file : files) {
    const auto path = folder / file.path;
    if (file.kind == ContextFile::Kind::directory) {
      core::make_folders(path);
      continue;
    }
    core::make_folders(path.parent_path());
    if (file.kind == ContextFile::Kind::symlink) {
      fs::create_symlink(file.content.value_or(""), path);
      continue;
    }
    if (!file.content) {
      fs::copy_file(file.source, path);
    } else {
      const bool is_script = file.path.ends_with(".sh");
      core::write_file_atomically(path,
                                  is_script ? with_own_folders(*file.content) : *file.content);
    }
    fs::permissions(path, static_cast<fs::perms>(file.mode));
  }
}

/// Returns the script that runs `command`, a script and its arguments, with only these variables.
std::string start_script(StringMap variables, const std::string& command) {
  variables.try_emplace("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
  variables.try_emplace("HOME", "/root");
  std::string text = "cd / && exec /usr/bin/env -i";
  for (const auto& [name, value] : variables) text += " " + core::shell_quote(name + "=" + value);
  return text + " /bin/sh " + command + "\n";
}

/// Returns the commands of those stages of a build that do not end up in the image: fetching the
/// installer, and building packages from sources.
std::string preparing_commands(const docker::ImagePlan& plan, bool has_sources) {
  const auto& installer = plan.python.installer;
  auto text = "set -eu\n/bin/sh /pipe/fetch/fetch.sh " + installer + " required\n";
  if (has_sources)
    text += "cp -R /pipe/sources /pipe/layer\n/bin/sh /pipe/python/layer.sh " + installer +
            " build\nrm -rf /pipe/layer\n";
  return text;
}

/// Returns the commands that install the layers.
std::string installing_commands(const docker::ImagePlan& plan) {
  std::string text = "set -eu\n";
  const auto titles = docker::layer_titles(plan.layers);
  for (std::size_t i = 0; i < plan.layers.size(); ++i)
    text += "echo " + core::shell_quote(titles[i].title) + "\nrm -rf /pipe/layer\n" +
            "cp -R /pipe/layers/" + std::to_string(i) +
            " /pipe/layer\n/bin/sh /pipe/python/layer.sh " + plan.python.installer + "\n";
  return text;
}

/// Returns the files of the build's context, at the paths where its scripts look for them.
std::vector<ContextFile> build_files(const docker::ImagePlan& plan) {
  std::vector<ContextFile> files;
  for (const auto* list : {&plan.context, &plan.host_only})
    for (auto file : *list) {
      if (file.path == "host/own-network") continue;  // The network is the machine's.
      if (file.path.starts_with("tools/")) file.path = "fetch/" + file.path.substr(6);
      files.push_back(std::move(file));
    }
  return files;
}

}  // namespace

/// Scripts to run in a container of an image, and their output.
struct ImagePackages::Work {
  fs::path folder;  ///< See unpacked_image_script().
  fs::path image;
  std::vector<ContextFile> files;  ///< Files below /pipe.
  std::vector<ImageScript> scripts;
  std::function<void(std::string_view)> on_line;
  std::string printed;  ///< The first `max_printed` bytes.
};

ImagePackages::ImagePackages(asio::io_context& loop, processes::ProcessReaper& reaper,
                             const OrchestratorOptions& options, std::string runtime)
    : reaper_(reaper),
      options_{.root = options.root,
               .template_dir = options.template_dir,
               .run_id = options.run_id,
               .lock = options.lock,
               .owner = options.state.empty() ? std::string() : owner_of(options.state),
               .state = options.state},
      runtime_(std::move(runtime)),
      lock_(
          loop,
          [this](docker::Resolution resolution, std::function<void(const std::string&)> on_line,
                 core::CancelSource& cancel) {
            return resolve_in_container(std::move(resolution), std::move(on_line), cancel);
          },
          options_) {}

bool ImagePackages::has_requirements(const StepSpec& step) const {
  return !docker::plan_image(step, options_).python.empty();
}

PackagePlan ImagePackages::plan(const StepSpec& step, docker::ImagePlan plan,
                                const json& parent) const {
  const auto identity = docker::image_identity(parent);
  PackagePlan result;
  result.plan = std::move(plan);
  docker::Locked locked;
  if (result.adds_files()) {
    const auto& python = result.plan.python;
    result.unknown = python_packages::unknown_reason(python);
    if (!result.unknown.empty()) {
      result.unknown = "not known until it runs: " + result.unknown;
      return result;
    }
    if (!lock_.covers(result.plan)) {
      const auto& notices = result.plan.notices;
      throw core::EnvironmentError(
          "its requirements are installed without a lock, which needs a Docker Engine" +
              (notices.empty() ? std::string() : ": " + notices.back()),
          {"name a `parent_image` that has them"});
    }
    result.requirements = docker::locked_lines(python, options_.root);
    locked = lock_.find(result.plan, identity);
    if (!locked) {
      result.unknown = "its requirements are not in " + options_.lock->path().filename().string() +
                       ": they are resolved first";
      return result;
    }
    result.plan = docker::plan_image(step, options_, docker::user_of(parent), locked.get());
  }
  const auto& known = result.plan;
  result.digest = known.build ? docker::plan_digest(known, {identity}) : identity;
  result.reference = known.build ? known.repository + ":env-" + result.digest.substr(0, 16)
                     : docker::has_archived_parent(known)
                         ? docker::archived_reference(known, identity)
                         : known.parent_image;
  return result;
}

async::Task<> ImagePackages::resolve(const StepSpec& step, PackagePlan plan, json parent,
                                     fs::path file, EventSink& events, core::CancelSource& cancel) {
  docker::ImageStatus status;
  status.digest = docker::image_identity(parent);
  status.image_id = file.string();
  for (const auto& [name, value] : variables_of_image(parent))
    plan.plan.python.environment.try_emplace(name, value);
  co_await lock_.resolve(plan.plan, status, step.name, events, cancel);
}

async::Task<lockfile::LockedEnvironment> ImagePackages::resolve_in_container(
    docker::Resolution resolution, std::function<void(const std::string&)> on_line,
    core::CancelSource& cancel) {
  const auto& plan = resolution.plan;
  on_line(docker::resolution_title(plan));
  const core::TemporaryFolder folder(squashfs_folder());
  Work work;
  work.folder = folder.path();
  work.image = resolution.image_id;
  work.files = docker::resolution_files(resolution);
  auto variables = plan.python.environment;
  variables["HOME"] = "/tmp";
  work.files.push_back(text_file(
      "start", start_script(std::move(variables),
                            "/pipe/lock/resolve.sh " + core::shell_quote(plan.python.installer))));
  work.scripts.push_back({.name = "start"});
  work.on_line = [&](std::string_view line) {
    if (const auto progress = docker::progress_of(line); !progress.empty())
      on_line(core::printable(progress));
  };
  const bool succeeded = co_await run(work, cancel);
  co_return docker::finished_resolution(plan, succeeded, work.printed);
}

async::Task<> ImagePackages::install(const PackagePlan& plan, StringMap variables, fs::path file,
                                     fs::path folder, std::function<void(std::string)> on_line,
                                     core::CancelSource& cancel) {
  Work work;
  work.folder = folder;
  work.image = std::move(file);
  work.files = build_files(plan.plan);
  const bool has_sources = std::ranges::any_of(
      work.files, [](const ContextFile& each) { return each.path == "sources/sources.txt"; });
  auto first = variables;
  first["HOME"] = "/tmp";
  work.files.push_back(text_file("prepare", preparing_commands(plan.plan, has_sources)));
  work.files.push_back(text_file("install", installing_commands(plan.plan)));
  work.files.push_back(text_file("start-prepare", start_script(first, "/pipe/prepare")));
  work.files.push_back(text_file("start-install", start_script(variables, "/pipe/install")));
  work.scripts.push_back({.name = "start-prepare"});
  work.scripts.push_back({.name = "start-install", .is_writable = true});
  work.on_line = [&](std::string_view line) { on_line(core::printable(line)); };
  const bool succeeded = co_await run(work, cancel);
  if (!succeeded)
    throw docker::failed_script("cannot install the packages on " + plan.plan.parent_image,
                                "the installer failed", work.printed);
}

/// Runs the scripts, and returns true if all of them have succeeded.
async::Task<bool> ImagePackages::run(Work& work, core::CancelSource& cancel) {
  const auto runtimes = building_runtimes(runtime_);
  const core::EnvironmentError no_runtime(
      "no container runtime of this machine can install its Python packages",
      {"install Apptainer or Charliecloud here, on the machine that `pipe` runs on",
       "`export DOCKER_HOST=ssh://HOST` names the engine of another machine",
       "name a `parent_image` that has the packages"});
  if (runtimes.empty()) throw no_runtime;
  write_files(work.folder / "pipe", work.files);
  core::write_file_atomically(work.folder / "run",
                              unpacked_image_script(work.image.string(), runtimes, work.scripts));
  ShellWork shell;
  shell.program = "sh";
  shell.arguments = "run 2>&1";
  shell.folder = work.folder;
  core::Lines lines;
  shell.on_output = [&](std::string_view bytes) {
    core::append_bounded(work.printed, bytes, max_printed);
    lines.feed(bytes, work.on_line);
  };
  const auto end = co_await run_work(std::move(shell), reaper_, cancel);
  if (end.code == no_runtime_code) throw no_runtime;
  co_return end.succeeded;
}

}  // namespace pipeline::orchestrators::slurm

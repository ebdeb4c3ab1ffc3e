#include "orchestrators/processes/installer.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "async/joinable_task.hpp"
#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/project.hpp"
#include "docker/index_config.hpp"
#include "docker/package_resolver.hpp"
#include "orchestrators/processes/file_lock.hpp"
#include "orchestrators/processes/install_advice.hpp"
#include "orchestrators/processes/requirement_files.hpp"
#include "orchestrators/processes/written_bytes.hpp"
#include "templates/templates.hpp"

namespace pipeline::orchestrators::processes {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kept_lines = 25, max_line = 64 * 1024;  // `max_line` in bytes.
/// Words of a failed command that its error message shows.
constexpr std::size_t shown_words = 4;

/// The words of a command. Each command is a named variable before it is awaited, because g++ 12
/// fails on a braced list within a co_await expression.
using Words = std::vector<std::string>;

/// Splits a stream into lines. A carriage return ends a line, too, as in the output of progress
/// bars.
class TerminalLines {
 public:
  explicit TerminalLines(std::function<void(std::string)> on_line) : on_line_(std::move(on_line)) {}
  void add(std::string_view bytes) {
    for (char c : bytes) {
      if (c == '\n' || c == '\r' || rest_.size() == max_line)
        end();
      else
        rest_ += c;
    }
  }
  void end() {
    if (!rest_.empty()) on_line_(std::exchange(rest_, {}));
  }

 private:
  std::function<void(std::string)> on_line_;
  std::string rest_;
};

/// Returns the device of the file, or if that does not exist, of its nearest existing folder.
dev_t device_of(fs::path path) {
  struct stat info {};
  while (stat(path.c_str(), &info) != 0 && path.has_relative_path()) path = path.parent_path();
  return info.st_dev;
}

/// Returns true if files in this folder can share their blocks.
bool has_clones(const fs::path& folder) {
  core::make_folders(folder);
  const core::TemporaryFolder scratch(folder);
  const auto source = scratch.path() / "source";
  core::write_file_atomically(source, "some bytes");
  const core::Descriptor from(open(source.c_str(), O_RDONLY | O_CLOEXEC)),
      to(open((scratch.path() / "clone").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  return from && to && ioctl(to.get(), FICLONE, from.get()) == 0;
}

/// Returns true for variables that only name package indexes; other variables of installers may
/// name programs that would be executed.
bool is_of_index(const std::string& name) {
  return (name.starts_with("PIP_") || name.starts_with("UV_")) &&
         (name.find("INDEX") != name.npos || name.ends_with("FIND_LINKS"));
}

bool refuses_caches(const std::vector<std::string>& arguments) {
  return std::ranges::any_of(arguments,
                             [](const auto& word) { return word.starts_with("--no-cache"); });
}

core::TemporaryFolder folder_in(const fs::path& folder) {
  core::make_folders(folder);
  return core::TemporaryFolder(folder);
}

}  // namespace

Installer::Installer(const EnvironmentPlan& plan, InstallerFolders folders, ProcessReaper& reaper,
                     core::CancelSource& cancel, std::function<void(std::string)> on_line)
    : plan_(plan),
      target_(std::move(folders.target)),
      cache_(std::move(folders.cache)),
      root_(std::move(folders.root)),
      templates_(std::move(folders.templates)),
      work_(folder_in(cache_)),
      reaper_(reaper),
      cancel_(cancel),
      on_line_(std::move(on_line)) {
  fs::create_directory_symlink(root_, work_.path() / root_link);
  variables_ = caller_variables();
  for (const char* other : {"VIRTUAL_ENV", "PIP_USER", "PIP_TARGET", "PIP_PREFIX",
                            "PIP_REQUIRE_VIRTUALENV", "__PYVENV_LAUNCHER__"})
    variables_.erase(other);  // The variable would make the installer use another folder.
  for (auto [name, value] : {std::pair{"PIP_DISABLE_PIP_VERSION_CHECK", "1"},
                             {"PIP_NO_INPUT", "1"},
                             {"PIP_PROGRESS_BAR", "off"},
                             {"UV_NO_PROGRESS", "1"},
                             {"UV_NO_WRAP", "1"},
                             {"NO_COLOR", "1"}})
    variables_[name] = value;
  // uv does not read pip's configuration, and installers bring authorities of their own.
  const auto host = docker::read_index_config(docker::this_machine());
  for (const auto& [name, value] : host.variables) variables_.try_emplace(name, value);
  if (host.ca)
    for (const char* name :
         {"PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"})
      if (auto& value = variables_[name]; value.empty()) value = host.ca->string();
  choose_uv_cache();
  // The pyproject.toml may have a table for uv, for example with package indexes.
  if (!plan_.asked.pyproject.empty() && !core::only_looks())
    core::write_file_atomically(work_.path() / project_file, plan_.asked.pyproject);
  for (const auto& [name, value] : plan_.asked.environment)
    if (!core::only_looks() || is_of_index(name)) variables_[name] = value;
  if (!core::only_looks()) return;
  variables_["UV_NO_BUILD"] = "1";
  variables_["PIP_ONLY_BINARY"] = ":all:";
}

/// uv links the files of its cache into environments: by clones, where the file system has them,
/// else by hard links, which need one file system.
void Installer::choose_uv_cache() {
  const auto value = [&](const char* name) {
    const auto found = variables_.find(name);
    return found == variables_.end() ? std::string() : found->second;
  };
  if (value("UV_CACHE_DIR").empty()) {
    const auto shared = value("XDG_CACHE_HOME");
    const auto usual = shared.empty() ? fs::path(value("HOME")) / ".cache" : fs::path(shared);
    if (device_of(usual / "uv") == device_of(cache_))
      variables_.erase("UV_CACHE_DIR");
    else
      variables_["UV_CACHE_DIR"] = (cache_ / "uv").string();
  }
  if (value("UV_LINK_MODE").empty())
    variables_["UV_LINK_MODE"] = has_clones(cache_) ? "clone" : "hardlink";
}

async::Task<> Installer::install() {
  fs::path uv;
  if (plan_.asked.installer == "uv") uv = co_await find_uv();
  if (uv.empty())
    co_await make_with_pip();
  else
    co_await make_with_uv(uv);
  if (!plan_.project_command.empty()) co_await install_project();
}

async::Task<bool> Installer::run(std::vector<std::string> command, const fs::path& folder) {
  last_lines_.clear();
  last_command_ = fs::path(command[0]).filename().string();
  for (std::size_t i = 1; i < std::min(command.size(), shown_words); ++i)
    last_command_ += " " + command[i];
  auto keep = [&](std::string line) {
    if (const auto progress = docker::progress_of(line); !progress.empty())
      return on_line_(std::string(progress));
    last_lines_.push_back(line);
    if (last_lines_.size() > kept_lines) last_lines_.pop_front();
    on_line_(std::move(line));
  };
  TerminalLines out(keep), err(keep);
  ProcessOptions options;
  options.program = find_program(command[0], variables_["PATH"]);
  if (options.program.empty()) {
    keep(command[0] + ": not found");
    co_return false;
  }
  options.program = fs::absolute(options.program);
  options.environment = variables_;
  move_logins(command, options.environment);
  options.arguments = std::move(command);
  options.folder = folder == root_ ? work_.path() : folder;
  options.grace = std::chrono::seconds(2);
  auto end = co_await run_reported(options, [&](Stream stream, std::string_view bytes) {
    (stream == Stream::out ? out : err).add(bytes);
  });
  out.end();
  err.end();
  if (end.stopped) throw core::EnvironmentError("stopped while making a virtual environment");
  if (end.start_error)
    keep(options.program.string() + ": " + std::string(strerror(end.start_error)));
  co_return !end.start_error && end.exited && end.code == 0;
}

/// Runs the process, and reports its output meanwhile.
async::Task<ProcessEnd> Installer::run_reported(ProcessOptions options, OutputCallback output) {
  const auto executor = co_await asio::this_coro::executor;
  core::CancelSource over;
  std::optional<async::JoinableTask> report;
  options.on_start = [&](pid_t process) {
    report.emplace(executor, report_written_bytes(process, on_line_, over));
  };
  ProcessEnd end;
  std::exception_ptr error;
  try {
    end = co_await run_process(options, reaper_, cancel_, std::move(output));
  } catch (...) {
    error = std::current_exception();
  }
  over.stop(core::StopLevel::immediate);
  if (report) co_await report->join();
  if (error) std::rethrow_exception(error);
  co_return end;
}

async::Task<> Installer::require(std::vector<std::string> command, const fs::path& folder,
                                 const std::string& what) {
  const bool succeeded = co_await run(std::move(command), folder);
  if (!succeeded) throw failure(what);
}

core::BuildError Installer::failure(const std::string& what) const {
  std::string output;
  for (auto& line : last_lines_) output += line + "\n";
  std::vector<std::string> details(last_lines_.begin(), last_lines_.end());
  details.insert(details.begin(), "$ " + last_command_ + " ...");
  return core::BuildError(
      "the virtual environment with " + plan_.summary() + " could not be made: " + what,
      std::move(details), advice_for_failed_install(output, plan_.python, root_));
}

/// Returns the uv on PATH, or the one in pipe's cache. Empty if there is none; pip is then used.
async::Task<fs::path> Installer::find_uv() {
  if (auto installed = find_program("uv", variables_["PATH"]); !installed.empty())
    co_return installed;
  const auto table = templates::template_text("image/tools.txt", templates_);
  const auto tools = cache_ / "tools";
  const auto made = tools / ("uv-" + core::sha256(table).hex().substr(0, 16));
  auto uv = made / "bin" / "uv";
  core::make_folders(tools);
  auto lock = co_await take_lock(
      tools / "uv.lock", [] {}, cancel_);
  if (access(uv.c_str(), X_OK) == 0 && access((made / ".complete").c_str(), F_OK) == 0)
    co_return uv;
  core::remove_tree(made);
  on_line_("uv is not installed: getting it from the package index, once");
  const core::TemporaryFolder folder;
  const auto script = folder.path() / "install_locked.py", list = folder.path() / "tools.txt";
  core::write_file_atomically(script,
                              templates::template_text("lock/install_locked.py", templates_));
  core::write_file_atomically(list, table);
  auto python = plan_.python.file.string();
  Words unpack{python,
               "-B",
               script.string(),
               "tool",
               (cache_ / "packages").string(),
               made.string(),
               list.string(),
               "uv",
               python,
               "-m",
               "pip"};
  bool is_unpacked = co_await run(unpack, root_);
  if (!is_unpacked) {  // Debian's Python may have no pip.
    const auto with_pip = folder.path() / "with-pip";
    Words environment{python, "-m", "venv", with_pip.string()};
    constexpr std::size_t python_of_pip = 8;  // The `python` of `python -m pip` in `unpack`.
    unpack[python_of_pip] = (with_pip / "bin/python").string();
    core::remove_tree(made);
    is_unpacked = co_await run(environment, root_) && co_await run(unpack, root_);
  }
  if (!is_unpacked || access(uv.c_str(), X_OK) != 0) {
    core::remove_tree(made);
    on_line_("uv cannot be installed here: pip takes its place");
    co_return fs::path();
  }
  core::sync_file_system(tools);
  core::write_file_atomically(made / ".complete", "");
  co_return uv;
}

async::Task<> Installer::make_with_uv(const fs::path& uv) {
  std::vector<std::string> make{uv.string(),    "venv",     "--quiet",
                                "--no-project", "--python", plan_.python.file.string()};
  if (!plan_.project_command.empty())
    make.push_back("--seed");  // The command may be `pip install .`.
  make.push_back(target_.string());
  co_await require(make, root_, "uv could not make the folder");
  if (plan_.asked.empty()) co_return;
  std::vector<std::string> install{uv.string(), "pip", "install", "--python",
                                   (target_ / "bin/python").string()};
  std::ranges::move(arguments_of(plan_, root_), std::back_inserter(install));
  const core::TemporaryFolder folder;
  add_constraints(install, plan_, folder.path());
  for (const auto& file : requirement_files(plan_, folder.path(), root_))
    co_await install_with_uv(install, file);
}

/// Installs with uv, whose cache may have the locked packages, so that no index is asked.
async::Task<> Installer::install_with_uv(std::vector<std::string> install,
                                         const fs::path& requirements) {
  install.insert(install.end(), {"--requirements", requirements.string()});
  if (!plan_.locked) {
    co_await require(install, root_, "uv could not install the packages");
    co_return;
  }
  install.push_back("--no-deps");
  // uv considers a project unchanged as long as its pyproject.toml is unchanged.
  for (const auto& package : plan_.locked->packages)
    if (package.origin == lockfile::PackageOrigin::path && package.sha256.empty())
      install.insert(install.end(), {"--refresh-package", package.name});
  if (!plan_.is_fresh) {
    auto offline = install;
    offline.push_back("--offline");
    const bool has_all = co_await run(offline, root_);
    if (has_all) co_return;
  }
  co_await require(install, root_, "uv could not install the packages");
}

async::Task<> Installer::make_with_pip() {
  auto python = plan_.python.file.string(), own = (target_ / "bin/python").string();
  Words pip;
  if (plan_.project_command.empty()) {
    // The machine's pip installs into the environment from outside. The environment then needs
    // neither a pip of its own, whose installation takes seconds, nor Debian's python3-venv.
    const Words make{python, "-m", "venv", "--without-pip", target_.string()},
        probe{python, "-m", "pip", "--python", own, "--version"};
    bool possible = co_await run(make, root_);
    if (possible) possible = co_await run(probe, root_);
    if (possible)
      pip = Words(probe.begin(), probe.end() - 1);
    else
      core::remove_tree(target_);
  }
  if (pip.empty()) {
    const Words make{python, "-m", "venv", target_.string()};
    co_await require(make, root_, "Python could not make the folder");
    pip = Words{own, "-m", "pip"};
  }
  pip.push_back("install");
  std::ranges::move(arguments_of(plan_, root_), std::back_inserter(pip));
  const core::TemporaryFolder folder;
  add_constraints(pip, plan_, folder.path());
  for (const auto& file : requirement_files(plan_, folder.path(), root_))
    co_await install_with_pip(pip, file);
}

async::Task<> Installer::install_with_pip(std::vector<std::string> install,
                                          const fs::path& requirements) {
  auto file = requirements;
  if (file.filename() == project_file) {
    // pip cannot read a pyproject.toml's dependencies without installing the project.
    static constexpr auto script =
        "import sys\n"
        "try: import tomllib\n"
        "except ImportError: from pip._vendor import tomli as tomllib\n"
        "names = tomllib.load(open(sys.argv[1], 'rb')).get('project', {}).get('dependencies', [])\n"
        "open(sys.argv[2], 'w').writelines(name + '\\n' for name in names)\n";
    file.replace_extension(".txt");
    const Words read{plan_.python.file.string(), "-c", script, requirements.string(),
                     file.string()};
    co_await require(read, root_, "cannot read pyproject.toml");
  }
  if (plan_.locked) {
    install.push_back("--no-deps");
    if (!refuses_caches(plan_.asked.arguments)) {
      co_await install_kept_with_pip(std::move(install), file);
      co_return;
    }
  }
  install.insert(install.end(), {"--requirement", file.string()});
  co_await require(install, root_, "pip could not install the packages");
}

/// Installs locked packages with pip from pipe's own cache of packages, because pip contacts the
/// index even for packages that are in pip's cache.
async::Task<> Installer::install_kept_with_pip(std::vector<std::string> install,
                                               const fs::path& requirements) {
  const core::TemporaryFolder folder;
  const auto script = folder.path() / "install_locked.py";
  core::write_file_atomically(script,
                              templates::template_text("lock/install_locked.py", templates_));
  core::write_file_atomically(requirements.string() + ".addresses",
                              lockfile::address_lines(*plan_.locked));
  for (const auto* task : {"build", "install"}) {
    Words command{plan_.python.file.string(),
                  "-B",
                  script.string(),
                  task,
                  (cache_ / "packages").string(),
                  (cache_ / "built").string(),
                  requirements.string()};
    command.insert(command.end(), install.begin(), install.end());
    co_await require(command, root_, "pip could not install the packages");
  }
}

async::Task<lockfile::LockedEnvironment> Installer::resolve(lockfile::LockedEnvironment preferred,
                                                            bool refresh) {
  fs::path uv;
  if (plan_.asked.installer == "uv") uv = co_await find_uv();
  variables_["PIPE_UV"] = uv.string();
  const core::TemporaryFolder folder;
  const auto script = folder.path() / "resolve.py", answer = folder.path() / "answer";
  core::write_file_atomically(script, templates::template_text("lock/resolve.py", templates_));
  const bool is_empty = true;  // The packages get a new virtual environment.
  core::write_file_atomically(
      folder.path() / "request.json",
      docker::resolution_request(arguments_of(plan_, root_), preferred, refresh, is_empty, root_));
  write_requirements(folder.path(), plan_.asked, root_);
  auto python = plan_.python.file.string();
  if (uv.empty()) python = co_await find_python_with_pip(folder.path());
  const Words command{python, "-B", script.string(), folder.path().string(), answer.string()};
  const bool succeeded = co_await run(command, root_);
  std::string printed;
  for (const auto& line : last_lines_) printed += line + "\n";
  std::error_code error;
  if (fs::exists(answer, error)) printed += core::read_file(answer);
  auto environment = succeeded ? docker::read_resolution(printed) : std::nullopt;
  if (!environment)
    throw core::BuildError("cannot resolve " + plan_.summary() + " for the Python of this machine",
                           {last_lines_.begin(), last_lines_.end()},
                           advice_for_failed_install(printed, plan_.python, root_));
  co_return std::move(*environment);
}

async::Task<std::string> Installer::find_python_with_pip(const fs::path& folder) {
  const auto python = plan_.python.file.string();
  const Words probe{python, "-m", "pip", "--version"};
  const bool has_pip = co_await run(probe, root_);
  if (has_pip) co_return python;
  const auto environment = folder / "with-pip";
  const Words make{python, "-m", "venv", environment.string()};
  co_await require(make, root_, "Python has no pip, and could not make a folder that has it");
  co_return (environment / "bin/python").string();
}

async::Task<> Installer::install_project() {
  auto folder = target_ / "project";
  core::make_folders(folder);
  for (auto& file : plan_.project) {
    auto to = folder / file.path;
    core::make_folders(to.parent_path());
    if (file.kind == file_tree::ContextFile::Kind::directory) {
      core::make_folders(to);
    } else if (file.kind == file_tree::ContextFile::Kind::symlink) {
      fs::create_symlink(file.content.value_or(""), to);
    } else {
      if (file.content)
        core::write_file_atomically(to, *file.content);
      else
        fs::copy_file(file.source, to);
      chmod(to.c_str(), file.mode);
    }
  }
  variables_["VIRTUAL_ENV"] = target_.string();
  variables_["PATH"] = (target_ / "bin").string() + ":" + variables_["PATH"];
  const Words command{"sh", "-c", plan_.project_command};
  co_await require(command, folder, "`" + plan_.project_command + "` failed");
}

}  // namespace pipeline::orchestrators::processes

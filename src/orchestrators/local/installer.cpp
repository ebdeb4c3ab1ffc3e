#include "orchestrators/local/installer.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "core/error.hpp"

namespace pipeline::orchestrators {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kept_lines = 25, longest_line = 64 * 1024;

/// A command is a named variable before it is awaited, because g++ 12 fails on a braced list within
/// a co_await expression.
using Words = std::vector<std::string>;

/// Splits a stream into lines.
class Lines {
 public:
  explicit Lines(std::function<void(std::string)> on_line) : on_line_(std::move(on_line)) {}
  void add(std::string_view bytes) {
    for (char c : bytes) {
      if (c == '\n' || c == '\r' || rest_.size() == longest_line)
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

bool contains_any(const std::string& text, std::initializer_list<const char*> phrases) {
  return std::any_of(phrases.begin(), phrases.end(),
                     [&](const char* phrase) { return text.find(phrase) != text.npos; });
}

}  // namespace

async::Task<core::Descriptor> take_lock(fs::path file, std::function<void()> on_wait,
                                        core::CancelSource& cancel) {
  core::Descriptor lock(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock) throw core::system_error("cannot open " + file.string(), errno);
  asio::steady_timer pause(co_await asio::this_coro::executor);
  for (bool has_waited = false; flock(lock.get(), LOCK_EX | LOCK_NB) != 0;) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      throw core::system_error("cannot lock " + file.string(), errno);
    if (!std::exchange(has_waited, true)) on_wait();
    if (cancel.level() != core::StopLevel::none)
      throw core::EnvironmentError(
          "stopped while waiting for another `pipe` to make a virtual environment");
    pause.expires_after(std::chrono::milliseconds(50));
    co_await pause.async_wait(asio::use_awaitable);
  }
  co_return lock;
}

Installer::Installer(const EnvironmentPlan& plan, fs::path target, fs::path cache, fs::path root,
                     ProcessReaper& reaper, core::CancelSource& cancel,
                     std::function<void(std::string)> on_line)
    : plan_(plan),
      target_(std::move(target)),
      cache_(std::move(cache)),
      root_(std::move(root)),
      reaper_(reaper),
      cancel_(cancel),
      on_line_(std::move(on_line)) {
  variables_ = caller_variables();
  for (const char* other : {"VIRTUAL_ENV", "PYTHONHOME", "PYTHONPATH", "PIP_USER", "PIP_TARGET",
                            "PIP_PREFIX", "PIP_REQUIRE_VIRTUALENV", "__PYVENV_LAUNCHER__"})
    variables_.erase(other);  // It would make the installer use another folder.
  for (auto [name, value] : {std::pair{"PIP_DISABLE_PIP_VERSION_CHECK", "1"},
                             {"PIP_NO_INPUT", "1"},
                             {"PIP_PROGRESS_BAR", "off"},
                             {"UV_NO_PROGRESS", "1"},
                             {"NO_COLOR", "1"}})
    variables_[name] = value;
  for (auto& [name, value] : plan_.variables) variables_[name] = value;
}

async::Task<> Installer::install() {
  fs::path uv;
  if (plan_.installer == PackageInstaller::uv) uv = co_await find_uv();
  if (uv.empty())
    co_await make_with_pip();
  else
    co_await make_with_uv(uv);
  if (!plan_.project_command.empty()) co_await install_project();
}

async::Task<bool> Installer::run(std::vector<std::string> command, const fs::path& folder) {
  last_lines_.clear();
  last_command_ = fs::path(command[0]).filename().string();
  for (std::size_t i = 1; i < command.size() && i < 4; ++i) last_command_ += " " + command[i];
  auto keep = [&](std::string line) {
    last_lines_.push_back(line);
    if (last_lines_.size() > kept_lines) last_lines_.pop_front();
    on_line_(std::move(line));
  };
  Lines out(keep), err(keep);
  ProcessOptions options;
  options.program = find_program(command[0], variables_["PATH"]);
  if (options.program.empty()) {
    keep(command[0] + ": not found");
    co_return false;
  }
  options.arguments = std::move(command);
  options.environment = variables_;
  options.folder = folder;
  options.grace = std::chrono::seconds(2);
  auto end =
      co_await run_process(options, reaper_, cancel_, [&](Stream stream, std::string_view bytes) {
        (stream == Stream::out ? out : err).add(bytes);
      });
  out.end();
  err.end();
  if (end.stopped) throw core::EnvironmentError("stopped while making a virtual environment");
  if (end.start_error)
    keep(options.program.string() + ": " + std::string(strerror(end.start_error)));
  co_return !end.start_error && end.exited && end.code == 0;
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

/// Returns the uv on PATH, or one that pipe has installed in its cache. Empty if there is none; pip
/// is then used.
async::Task<fs::path> Installer::find_uv() {
  if (auto installed = find_program("uv", variables_["PATH"]); !installed.empty())
    co_return installed;
  auto tools = cache_ / "tools";
  auto uv = tools / "uv" / "bin" / "uv";
  core::make_folders(tools);
  auto lock = co_await take_lock(
      tools / "uv.lock", [] {}, cancel_);
  if (access(uv.c_str(), X_OK) == 0 && access((tools / "uv" / ".complete").c_str(), F_OK) == 0)
    co_return uv;
  core::remove_tree(tools / "uv");
  on_line_("uv is not installed: getting it from the package index, once");
  auto python = plan_.python.file.string();
  Words beside{python, "-m", "pip", "install", "--target", (tools / "uv").string(), "uv"};
  bool made = co_await run(beside, root_);
  if (!made) {
    core::remove_tree(tools / "uv");
    Words environment{python, "-m", "venv", (tools / "uv").string()},
        within{(tools / "uv" / "bin" / "python").string(), "-m", "pip", "install", "uv"};
    made = co_await run(environment, root_) && co_await run(within, root_);
  }
  if (!made || access(uv.c_str(), X_OK) != 0) {
    core::remove_tree(tools / "uv");
    on_line_("uv cannot be installed here: pip takes its place");
    co_return fs::path();
  }
  core::write_file_atomically(tools / "uv" / ".complete", "");
  co_return uv;
}

async::Task<> Installer::make_with_uv(const fs::path& uv) {
  std::vector<std::string> make{uv.string(),    "venv",     "--quiet",
                                "--no-project", "--python", plan_.python.file.string()};
  if (!plan_.project_command.empty())
    make.push_back("--seed");  // The command may be `pip install .`.
  make.push_back(target_.string());
  co_await require(make, root_, "uv could not make the folder");
  std::vector<std::string> install{uv.string(), "pip", "install", "--python",
                                   (target_ / "bin/python").string()};
  install.insert(install.end(), plan_.installer_options.begin(), plan_.installer_options.end());
  auto bare = install.size();
  if (!plan_.requirements.empty()) {
    // Runs in the root, against which relative paths in it are resolved; the file itself is in the
    // environment.
    std::string text;
    for (auto& line : plan_.requirements) text += line + "\n";
    core::write_file_atomically(target_ / "requirements.txt", text);
    install.insert(install.end(), {"--requirements", (target_ / "requirements.txt").string()});
  }
  if (!plan_.pyproject.empty())
    install.insert(install.end(), {"--requirements", plan_.pyproject.string()});
  if (install.size() > bare) co_await require(install, root_, "uv could not install the packages");
}

async::Task<> Installer::make_with_pip() {
  auto python = plan_.python.file.string(), own = (target_ / "bin/python").string();
  Words pip;
  if (plan_.project_command.empty()) {
    // The machine's pip installs into the environment from outside, so that it needs no pip of its
    // own, which takes seconds, and no python3-venv of Debian.
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
  std::vector<std::string> install = pip;
  install.push_back("install");
  install.insert(install.end(), plan_.installer_options.begin(), plan_.installer_options.end());
  std::string text;
  if (!plan_.pyproject.empty()) {
    // pip cannot read a pyproject.toml's dependencies without installing the project.
    static constexpr auto script =
        "import sys\n"
        "try: import tomllib\n"
        "except ImportError: from pip._vendor import tomli as tomllib\n"
        "names = tomllib.load(open(sys.argv[1], 'rb')).get('project', {}).get('dependencies', [])\n"
        "open(sys.argv[2], 'w').writelines(name + '\\n' for name in names)\n";
    const Words read{python, "-c", script, plan_.pyproject.string(),
                     (target_ / "pyproject.txt").string()};
    co_await require(read, root_, "cannot read " + plan_.pyproject.string());
    text = core::read_file(target_ / "pyproject.txt");
  }
  for (auto& line : plan_.requirements) text += line + "\n";
  if (text.empty()) co_return;
  core::write_file_atomically(target_ / "requirements.txt", text);
  install.insert(install.end(), {"--requirement", (target_ / "requirements.txt").string()});
  co_await require(install, root_, "pip could not install the packages");
}

async::Task<> Installer::install_project() {
  auto folder = target_ / "project";
  core::make_folders(folder);
  for (auto& file : plan_.project) {
    auto to = folder / file.path;
    core::make_folders(to.parent_path());
    if (file.kind == archive::ContextFile::Kind::directory) {
      core::make_folders(to);
    } else if (file.kind == archive::ContextFile::Kind::symlink) {
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

std::vector<std::string> advice_for_failed_install(const std::string& output, const Program& python,
                                                   const fs::path& root) {
  std::vector<std::string> advice;
  auto version = python.version.empty() ? python.file.string() : "Python " + python.version;
  if (contains_any(output, {"ensurepip is not available", "No module named venv",
                            "No module named ensurepip"}))
    advice.push_back(
        "install what `python3 -m venv` needs (Debian: apt install python3-venv), or uv");
  if (contains_any(output, {"No matching distribution", "no version of",
                            "was not found in the package registry", "no versions of",
                            "there are no versions"}))
    advice.push_back("check the name and version: the index has none that suits " + version +
                     " on this machine");
  if (contains_any(output, {"requires a different Python", "Requires-Python",
                            "does not satisfy Python", "requires-python"}))
    advice.push_back("this machine runs " + version +
                     "; choose a version of the package for it, or `--orchestrator docker` with a "
                     "parent_image of the right one");
  if (contains_any(output, {"Temporary failure in name resolution", "Name or service not known",
                            "Connection refused", "Network is unreachable", "timed out",
                            "dns error", "error sending request", "Failed to fetch"}))
    advice.push_back(
        "the package index cannot be reached: check the network, proxy (https_proxy) and index "
        "(PIP_INDEX_URL, UV_INDEX_URL, pip.conf)");
  if (contains_any(output, {"CERTIFICATE_VERIFY_FAILED", "certificate verify failed",
                            "invalid peer certificate", "UnknownIssuer"}))
    advice.push_back(
        "a certificate is not trusted: name your CA bundle in SSL_CERT_FILE (uv) or PIP_CERT "
        "(pip)");
  if (contains_any(output, {"No space left on device", "Disk quota exceeded"}))
    advice.push_back("the disk is full: " + cache_folder().string());
  if (contains_any(output, {"Python.h", "command 'gcc' failed", "command 'cc' failed",
                            "error: command 'x86_64", "linker `cc` not found"}))
    advice.push_back(
        "a package is compiled from source: install a compiler and Python's headers (Debian: apt "
        "install build-essential python3-dev), or take a "
        "version with a wheel");
  if (contains_any(output,
                   {"Could not open requirements file", "File not found", "does not exist"}))
    advice.push_back("relative paths are taken from " + root.string());
  if (advice.empty())
    advice.push_back("the same by hand: python3 -m venv /tmp/try && /tmp/try/bin/pip install ...");
  return advice;
}

}  // namespace pipeline::orchestrators

#include "orchestrators/processes/failure.hpp"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/diagnostic.hpp"
#include "gpu/errors.hpp"
#include "orchestrators/crash_reason.hpp"
#include "orchestrators/memory_failure.hpp"
#include "orchestrators/stopped.hpp"

namespace pipeline::orchestrators::processes {
namespace {

namespace fs = std::filesystem;

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name ? "SIG" + std::string(name) : "signal " + std::to_string(signal);
}

/// Returns `did you mean 'X'?` for a program on PATH with a similar name; empty if there is none.
std::string similar_program_hint(const std::string& name, const std::string& path) {
  std::vector<std::string> names;
  for (std::size_t from = 0; from <= path.size();) {
    auto to = std::min(path.find(':', from), path.size());
    std::error_code error;
    for (auto& entry : fs::directory_iterator(path.substr(from, to - from), error))
      names.push_back(entry.path().filename().string());
    from = to + 1;
  }
  return core::did_you_mean(name, names);
}

}  // namespace

Failure not_found(const std::string& name, const std::string& path, const fs::path& code) {
  Failure failure{FailureKind::not_started, {}, {}, {}};
  if (name.empty()) {
    failure.message = "its command is empty";
    return failure;
  }
  std::error_code error;
  const bool has_slash = name.find('/') != name.npos;
  const bool is_folder = fs::is_directory(code / name, error);
  if (has_slash && is_folder) {
    failure.message = "'" + name + "' cannot be executed: it is a folder";
    failure.hints = {"name a program in the folder",
                     "[python, " + name + "] runs the folder's __main__.py"};
    return failure;
  }
  if (has_slash && fs::exists(code / name, error)) {
    failure.message = "'" + name + "' cannot be executed: the file has no execute permission";
    failure.hints = {"chmod +x " + name, "or name the program that runs it, as in [python, " +
                                             name + "] or [sh, " + name + "]"};
    return failure;
  }
  if (!is_folder && fs::exists(code / name, error)) {
    failure.message = "there is no program '" + name + "' on PATH";
    failure.hints = {"for the file of the step's code write ./" + name + " or [python, " + name +
                     "]"};
    return failure;
  }
  if (has_slash) {
    failure.message = "there is no file '" + name + "' to execute";
    if (name.front() != '/')
      failure.hints.push_back("add it to the step's `code:`, if it is in the pipeline's folder");
    return failure;
  }
  failure.message = "there is no program '" + name + "' on PATH";
  if (auto hint = similar_program_hint(name, path); !hint.empty())
    failure.hints.push_back(std::move(hint));
  if (name.starts_with("python"))
    failure.hints.push_back("install Python (Debian: apt install python3)");
  else
    failure.hints.push_back(
        "install it on this machine, or, if a Python package brings it, add that package to "
        "settings.docker.requirements");
  failure.hints.push_back(
      "`--orchestrator docker` runs the step in its image instead, with the image's programs");
  return failure;
}

std::optional<Failure> failure_of(const ProcessEnd& end, bool out_of_memory, const StepSpec& step) {
  if (end.ignored_stop) return had_to_be_killed();
  if (end.stopped) return was_stopped();
  if (end.start_error)
    return Failure{FailureKind::not_started,
                   "could not be started: " + std::string(strerror(end.start_error)),
                   end.start_error == E2BIG
                       ? std::vector<std::string>{"its command, parameters and variables are too "
                                                  "long: pass a long value as a file, by `inputs:`"}
                       : std::vector<std::string>(),
                   {}};
  if (end.exited && end.code == 0 && end.left == 0) return {};
  if (end.exited && end.code == 0)
    return Failure{
        FailureKind::environment,
        "left " + std::to_string(end.left) +
            " processes of another user, which cannot be killed and may still write to its outputs",
        {"wait in the step for all that it starts with sudo or as another user"},
        {}};
  if (out_of_memory) return memory_failure(step, "this machine");
  if (!end.exited) {
    Failure failure{FailureKind::signal, "was killed by " + signal_name(end.code), {}, {}};
    if (auto why = crash_reason(end.code); !why.empty()) failure.hints.push_back(why);
    return failure;
  }
  Failure failure{
      FailureKind::exit_code, "ended with exit code " + std::to_string(end.code), {}, {}};
  if (step.command.shell && end.code == 127)
    failure.hints.push_back("127 is the shell's code for a program that it cannot find");
  if (step.command.shell && end.code == 126)
    failure.hints.push_back("126 is the shell's code for a file that it may not execute");
  if (end.code > 128 && end.code < 128 + NSIG && sigabbrev_np(end.code - 128))
    failure.hints.push_back(std::to_string(end.code) +
                            " usually means that a process in it was killed by " +
                            signal_name(end.code - 128));
  return failure;
}

void explain(Failure& failure, const ProcessEnd& end, const ProcessOptions& process,
             const std::string& last_output, bool has_gpus) {
  if (failure.kind != FailureKind::cancelled)
    if (const auto trouble = gpu::gpu_trouble_in_log(last_output, has_gpus)) {
      failure.hints.push_back(trouble->cause);
      failure.hints.insert(failure.hints.end(), trouble->advice.begin(), trouble->advice.end());
    }
  // The file exists, so the program named in its first line does not.
  if (end.start_error == ENOENT)
    failure.hints.push_back("the interpreter that the first line of " + process.program.string() +
                            " names is not there");
}

std::vector<std::string> ignored_settings(const Settings& settings,
                                          const Capabilities& capabilities) {
  auto& docker = settings.docker;
  std::vector<std::string> ignored;
  const std::string machine = capabilities.on_this_machine ? "this machine" : "a node";
  const auto say = [&](bool given, const char* name, const std::string& instead) {
    if (given)
      ignored.push_back("the " + capabilities.name + " orchestrator does not use `" + name +
                        "`: " + instead);
  };
  say(docker.parent_image.has_value() && !docker.dockerfile, "parent_image",
      "steps are processes of " + machine + ", with its programs");
  say(docker.dockerfile.has_value(), "dockerfile",
      "steps are processes of " + machine + ", with its programs");
  say(docker.skip_build.value_or(false), "skip_build",
      "Python requirements are installed into a virtual environment all the same");
  say(docker.prevent_build_reuse.value_or(false), "prevent_build_reuse",
      "equal requirements share a virtual environment");
  say(!docker.apt_packages.items().empty(), "apt_packages",
      "install them where the steps run, if the steps need them");
  say(docker.apt_snapshot.has_value(), "apt_snapshot", "no Debian packages are installed");
  say(docker.user.has_value(), "user", "steps run as you");
  say(!docker.volumes.items().empty(), "volumes",
      "steps read the folders where they are on " + machine);
  say(docker.network.has_value(), "network", "steps use the network of " + machine);
  say(docker.platform.has_value(), "platform", "steps run on the CPU of " + machine);
  say(!docker.labels.empty(), "labels", "processes have no labels");
  say(!docker.run_args.empty(), "run_args", "there is no container");
  say(settings.resources.shm_size.has_value(), "shm_size", "/dev/shm is that of " + machine);
  say(settings.resources.memory && !capabilities.memory_limits, "memory",
      "this user may not make control groups with a memory limit here");
  say(settings.resources.cpu_count && !capabilities.cpu_limits, "cpu_count",
      "this user may not make control groups with a CPU limit here");
  return ignored;
}

}  // namespace pipeline::orchestrators::processes

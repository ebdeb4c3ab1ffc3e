#include "orchestrators/containers/container_end.hpp"

#include <csignal>
#include <cstring>

#include "core/quantity.hpp"
#include "gpu/errors.hpp"
#include "orchestrators/containers/container_layout.hpp"
#include "orchestrators/crash_reason.hpp"
#include "orchestrators/memory_failure.hpp"
#include "orchestrators/preflight.hpp"
#include "orchestrators/retry_advice.hpp"

namespace pipeline::orchestrators::containers {
namespace {

/// Returns the program that the container was to run, such as `sh`.
std::string program_of(const AttemptSpec& attempt) {
  if (attempt.step.command.shell)
    return attempt.step.command.interpreter.empty() ? "sh" : attempt.step.command.interpreter[0];
  const auto command = command_of(attempt, container_layout());
  return command.empty() ? std::string() : command.front();
}

constexpr auto engine_machine = "the engine's machine";
/// The engine's default for /dev/shm.
constexpr Bytes engine_shm_size = Bytes{64} << 20;
/// Exit codes of shells and init programs: for a program that cannot be executed, for one that is
/// not found, and, with the signal's number added, for one that a signal has ended.
constexpr int not_executable = 126, not_found = 127, by_signal = 128, killed = by_signal + SIGKILL;

std::string memory_limit(const AttemptSpec& attempt) {
  return memory_limit_text(attempt.step, engine_machine);
}

/// Returns true for a program's messages about a full /dev/shm, or about a worker that a full
/// /dev/shm has ended.
bool lacks_shared_memory(std::string_view output) {
  const auto says = [&](const char* text) { return output.find(text) != output.npos; };
  return says("Bus error") || says("out of shared memory") ||
         (says("No space left on device") &&
          (says("shared memory") || says("/dev/shm") || says("</torch_")));
}

}  // namespace

std::optional<Failure> not_executed(std::string_view text, const AttemptSpec& attempt,
                                    const std::string& image) {
  const auto has = [&](std::string_view part) { return text.find(part) != text.npos; };
  const auto program = program_of(attempt);
  const bool is_missing = has("executable file not found") ||
                          (text.starts_with(gate_name) && has("not found")) ||
                          has("No such file or directory") || has("no such file or directory");
  Failure failure{FailureKind::not_started, {}, {}, {}};
  if (has("\"docker-init\"")) {
    failure.message =
        "could not start: the engine's machine has no docker-init, the first process of containers";
    failure.hints = {"install it there: it belongs to Docker's packages, and to `tini` in Debian",
                     "or run without it: `run_args: {init: false}` in `settings.docker`"};
  } else if (has("\"/sbin/docker-init\"")) {
    failure.message =
        "could not start: its container lacks /sbin/docker-init, the first process of containers";
    failure.hints = {"a volume covers /sbin, or /usr/sbin, where /sbin is a link to it"};
  } else if (is_missing) {
    if (attempt.step.command.shell) {
      failure.message = "could not start: the image " + image + " has no shell (`" + program + "`)";
      failure.hints = {
          "write the command as a list, which needs no shell: `command: [PROGRAM, ARGUMENT, ...]`",
          "or take a parent image that has one"};
    } else {
      failure.message =
          "could not start: there is no program '" + program + "' in the image " + image;
      failure.hints = {
          "install it with `apt_packages` or `requirements`, or take a parent image that has it"};
      if (program.find('/') != program.npos)
        failure.hints.push_back(
            "if it is a script, the interpreter that its first line names must be in the image");
      else if (program == "python")
        failure.hints.push_back("some images have `python3` only");
    }
  } else if (has("Permission denied") || has("permission denied")) {
    failure.message = "could not start: '" + program + "' is not executable in the image " + image;
    failure.hints = {
        "make it executable (`chmod +x`), or name its interpreter: `command: [python, " + program +
        "]`"};
  } else if (has("Exec format error") || has("exec format error")) {
    failure.message = "could not start: '" + program + "' in the image " + image +
                      " is not a program for this machine";
    failure.hints = {"check `platform`; a script needs a first line such as `#!/bin/sh`"};
  } else {
    return std::nullopt;
  }
  return failure;
}

std::optional<Failure> failure_of(const ContainerEnd& end, const AttemptSpec& attempt,
                                  const std::string& image) {
  const auto code = std::to_string(end.exit_code);
  if (end.exit_code == 0) return std::nullopt;
  if (end.exit_code == killed && end.oom_killed)
    return memory_failure(attempt.step, engine_machine);
  const bool by_init = end.first_errors.starts_with("[FATAL tini") ||
                       end.first_errors.find("catatonit") != std::string::npos ||
                       end.first_errors.find("failed to exec pid1") != std::string::npos ||
                       end.first_errors.starts_with("pipe-init: ") ||
                       end.first_errors.starts_with(gate_name);
  const bool by_catatonit =
      end.exit_code == 1 && end.first_errors.find("catatonit") != std::string::npos;
  if (((end.exit_code == not_executable || end.exit_code == not_found) && by_init) || by_catatonit)
    if (auto failure = not_executed(end.first_errors, attempt, image)) return failure;
  Failure failure{FailureKind::exit_code, "ended with exit code " + code, {}, {}};
  constexpr int real_time_signals = 32;  // The first of the signals without names.
  if (end.exit_code > by_signal && end.exit_code < by_signal + real_time_signals) {
    const char* name = sigabbrev_np(end.exit_code - by_signal);
    if (name) {
      failure.kind = FailureKind::signal;
      failure.message = std::string("was killed by SIG") + name + " (exit code " + code + ")";
      const auto why = crash_reason(end.exit_code - by_signal);
      if (!why.empty() && end.exit_code != by_signal + SIGBUS) failure.hints.push_back(why);
    }
  } else if (end.exit_code == not_found) {
    failure.hints.push_back(
        "127 is a shell's \"command not found\": a program that the command names is not in the "
        "image " +
        image +
        ": list its Debian package under `apt_packages` of `settings.docker`, or correct its name");
  } else if (end.exit_code == not_executable) {
    failure.hints.push_back("126 is a shell's \"not executable\"");
  }
  const auto& resources = attempt.step.settings->resources;
  if ((end.exit_code == by_signal + SIGBUS || lacks_shared_memory(end.last_output)) &&
      (resources.shm_size || attempt.gpus.empty()))
    failure.hints.push_back(
        "a program ends like this when its shared memory is full: /dev/shm has " +
        core::format_bytes(resources.shm_size.value_or(engine_shm_size)) +
        ", and `resources: {shm_size: 1GiB}` gives it more");
  if (end.exit_code == killed && attempt.step.settings->resources.memory)
    failure.hints.push_back("if that was for memory (" + memory_limit(attempt) +
                            "), the engine did not notice: raise `resources.memory`");
  if (end.oom_killed)
    failure.hints.push_back("the kernel killed one of its processes for memory (" +
                            memory_limit(attempt) + "): raise `resources.memory`");
  if (const auto trouble = gpu::gpu_trouble_in_log(end.last_output, !attempt.gpus.empty())) {
    failure.hints.push_back(trouble->cause);
    failure.hints.insert(failure.hints.end(), trouble->advice.begin(), trouble->advice.end());
  }
  return failure;
}

Failure start_failure(const docker::EngineError& error, const AttemptSpec& attempt,
                      const std::string& image) {
  const std::string text = error.what();
  if (error.status() != 500 && docker::is_retryable(error.status(), text))
    return engine_lost(error);
  if (auto trouble = gpu::gpu_trouble(text)) {
    const auto kind =
        trouble->is_transient ? FailureKind::infrastructure : FailureKind::not_started;
    return {kind, "could not start: " + trouble->cause, std::move(trouble->advice), {text}};
  }
  if (text.find("exec") != text.npos && text.find("mount") == text.npos)
    if (auto failure = not_executed(text, attempt, image)) {
      failure->details.push_back(text);
      return *failure;
    }
  return {FailureKind::not_started, text, error.advice(), {}};
}

Failure ended_with_engine(int exit_code) {
  return {FailureKind::infrastructure,
          "was ended with its engine, which was restarted or stopped the container (exit code " +
              std::to_string(exit_code) + ")",
          {retry_advice,
           "`live-restore` in the engine's daemon.json keeps containers running while it restarts"},
          {}};
}

Failure was_removed(const std::string& container) {
  return {FailureKind::infrastructure,
          "lost its container " + container + ", which another program removed",
          {retry_advice},
          {}};
}

Failure engine_lost(const core::EnvironmentError& error) {
  Failure failure{FailureKind::infrastructure,
                  std::string("lost its engine: ") + error.what(),
                  {retry_advice},
                  {}};
  failure.hints.push_back(
      "`docker info` shows whether the engine answers; PIPE_ENGINE_TIMEOUT sets how long an answer "
      "may take");
  for (const auto& advice : error.advice()) failure.hints.push_back(advice);
  return failure;
}

}  // namespace pipeline::orchestrators::containers

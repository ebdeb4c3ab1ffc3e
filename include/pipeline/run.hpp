/// @file
/// The engine for programs that do more than run_main(): runs with callbacks, their results, and
/// user-defined executors.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <pipeline/events.hpp>
#include <pipeline/function.hpp>
#include <pipeline/pipeline.hpp>

namespace pipeline {

struct StepSpec;

/// An error in the pipeline or an option, or something that the machine lacks.
struct Diagnostic {
  std::string code = {};     ///< Stable name of the error, such as `unknown-key`; may be empty.
  std::string message = {};  ///< A single line.
  std::string file = {};     ///< Source file that declares the step; empty if unknown.
  unsigned line = 0;         ///< Counted from 1, like the column; 0: the file as a whole.
  unsigned column = 0;
  std::vector<std::string> notes = {};  ///< For example the permitted values.
  std::string hint = {};                ///< A suggestion; may be empty.
};

/// A run that cannot start: the pipeline or an option is wrong, the machine lacks something, or the
/// run is stopped before it begins. `what()` is the text that `pipe run` would print, including
/// hints; empty for a stopped run.
class RunError : public std::runtime_error {
 public:
  /// @param exit_code the value that run_main() would have returned: 2 wrong input, 3 the machine
  /// lacks something, 4 an image could not be built, 130 the run is stopped
  RunError(const std::string& message, int exit_code, std::vector<Diagnostic> diagnostics = {})
      : runtime_error(message), exit_code_(exit_code), diagnostics_(std::move(diagnostics)) {}
  int exit_code() const { return exit_code_; }
  /// Returns all errors, at least one.
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }

 private:
  int exit_code_;
  std::vector<Diagnostic> diagnostics_;
};

/// An attempt of a step, for an Executor. All paths are absolute.
struct ExecutorRequest {
  std::string pipeline = {}, run = {}, step = {};
  /// Number of the attempt, from 1.
  unsigned number = 1;
  /// Words of the command, which is executed in `folder`.
  std::vector<std::string> command = {};
  /// All variables that pipe and the step set. The executor adds variables that a process needs
  /// besides, such as PATH.
  StringMap environment = {};
  /// Folder with the step's code.
  std::string folder = {};
  /// The step's outputs are the content of this folder at the end, under their file names.
  std::string outputs = {};
  /// Folder for temporary files, which is removed after the attempt.
  std::string scratch = {};
  /// Resources that the step asks for. GPUs are not reserved: the executor chooses them.
  ResourceSettings resources = {};
  /// Receives the step's output in pieces of any size. May be called from any thread until
  /// Executor::run() returns.
  Function<void(Stream, std::string_view)> log = {};
  /// Asks the executor to end the step.
  std::stop_token stop = {};
};

/// Runs steps besides the built-in orchestrators: in a batch system, on another machine, in a test.
///
/// ```cpp
/// struct Batch : pl::Executor {
///   std::string name() const override { return "batch"; }
///   std::string environment(const pl::StepSpec&) override { return "batch 1"; }
///   std::optional<pl::Failure> run(const pl::ExecutorRequest& request) override {
///     return submit_and_wait(request);
///   }
/// };
/// ```
class Executor {
 public:
  /// Name for `--orchestrator` and records: letters, digits and `-`.
  virtual std::string name() const = 0;
  /// Returns a text that identifies the environment of the step. The text is part of the step's
  /// key: when it changes, the step is run again. Called on the thread of the run.
  /// @param step declared in <pipeline/spec.hpp>
  virtual std::string environment(const StepSpec& step) = 0;
  /// Runs the attempt to its end. Called on a separate thread; at most RunOptions::jobs calls run
  /// concurrently. An exception is a failure, too.
  /// @return nothing on success
  virtual std::optional<Failure> run(const ExecutorRequest& request) = 0;
  virtual ~Executor() = default;
};

struct RunOptions {
  /// Same as `--param`: values by name.
  std::map<std::string, std::string> parameters = {};
  /// Same as `--profile`. Empty: `$PIPE_PROFILE`, else the profile `default` if there is one.
  /// Options that are set here override it.
  std::string profile = {};
  /// Same as `--orchestrator`: `docker`, `local`, `kubernetes` or `slurm`. A profile's orchestrator
  /// replaces `docker`, because that is the default here.
  std::string orchestrator = "docker";
  /// Used instead of an orchestrator. Shared, so that the caller can query the executor later.
  std::shared_ptr<Executor> executor = {};
  /// Run only this step and its dependencies.
  std::string step = {};
  /// Maximum number of concurrent steps; 0: the number of CPUs.
  unsigned jobs = 0;
  /// Whether earlier successes are reused.
  bool use_cache = true;
  /// Folder of runs and artifacts. Default: PIPE_HOME, else `.pipe` in the pipeline's root.
  std::string state = {};
  /// Called on the thread of run(), in order. Must not block, and must not throw.
  Function<void(const Event&)> on_event = {};
  /// Stops the run gracefully, from any thread.
  std::stop_token stop = {};
};

/// An output of a step, on this machine.
struct StoredOutput {
  std::string name;
  std::string path;  ///< Read-only.
  std::uint64_t bytes = 0;
};

/// A step of a run that has ended.
struct StepResult {
  std::string name;
  StepStatus status = StepStatus::pending;
  unsigned attempts = 0;
  std::chrono::milliseconds took{};
  std::optional<Failure> failure;
  std::string reused_from;  ///< For a cached step: the identifier of the run that made its outputs.
  std::vector<StoredOutput> outputs;
};

/// A run that has ended.
class RunResult {
 public:
  std::string id;
  RunStatus status = RunStatus::failed;
  std::chrono::milliseconds took{};
  std::vector<StepResult> steps;  ///< In the pipeline's order; only those that belonged to the run.

  bool succeeded() const { return status == RunStatus::succeeded; }
  /// Throws std::out_of_range if the run had no such step.
  const StepResult& step(const std::string& name) const;
  /// Returns the path of the artifact. Throws std::out_of_range if its step has not made it.
  const std::string& path(const AnyArtifact& artifact) const;
  /// Loads the artifact: `result.load(model).weights`. Throws std::out_of_range as path() does, and
  /// the exceptions of its codec.
  template <class T>
  T load(const Artifact<T>& artifact) const {
    return Codec<T>::load(path(artifact));
  }
};

/// For programs with several pipelines: in a process that a run has started for a step of one of
/// them, calls the step and ends the process; otherwise does nothing. Call it before the first
/// run(), which does the same for its own pipeline only.
void enter_steps(std::initializer_list<const Pipeline*> pipelines);

/// Runs the pipeline to its end, on this thread. A failed step does not throw; it is part of the
/// result. Each function is called in a separate process, for which the program is started again up
/// to this call, without the arguments of this process. Code before the call must therefore be safe
/// to run more than once, and must declare the same steps each time.
/// @throws RunError if the run cannot start
RunResult run(const Pipeline& pipeline, const RunOptions& options = {});

}  // namespace pipeline

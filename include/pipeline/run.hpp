/// @file
/// The engine for programs that want more than run_main(): a run with callbacks, its result, and
/// places of your own for steps to run in.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include <pipeline/chrono.hpp>
#include <pipeline/function.hpp>
#include <pipeline/pipeline.hpp>

namespace pipeline {

struct StepSpec;

/// A run that cannot begin: the pipeline or an option is wrong, or the machine lacks something.
/// `what()` is what `run` would print, with hints.
class RunError : public std::runtime_error {
 public:
  /// @param exit_code what run_main() would have returned: 2 wrong input, 3 the machine
  RunError(const std::string& message, int exit_code)
      : runtime_error(message), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

/// One attempt of a step, for a place of your own.
struct ExecutorRequest {
  std::string pipeline, run, step;
  unsigned number;                   ///< From 1.
  std::vector<std::string> command;  ///< To be executed in `folder`.
  StringMap environment;  ///< All that pipe sets, the step's own included; what a process needs
                          ///< besides (PATH, ...) is the place's.
  std::string folder;     ///< The step's code.
  std::string outputs;    ///< What is here at the end, under the file names of the outputs, is what
                          ///< the step has made.
  std::string scratch;    ///< Gone after the attempt.
  ResourceSettings resources;
  /// Takes what the step prints, in pieces of any size. May be called from any thread until run()
  /// returns.
  Function<void(Stream, std::string_view)> log;
  std::stop_token stop;  ///< Asks to end the step.
};

/// A place for steps to run in, besides `local` and `docker`: a batch system, another machine, a
/// test.
///
/// ```cpp
/// struct Batch : pl::Executor {
///   std::string name() const override { return "batch"; }
///   std::string environment(const pl::StepSpec&) override { return "batch 1"; }
///   std::optional<pl::Failure> run(const pl::ExecutorRequest& attempt) override { return
///   submit_and_wait(attempt); }
/// };
/// ```
class Executor {
 public:
  /// For `--orchestrator` and records: letters, digits and `-`.
  virtual std::string name() const = 0;
  /// What determines what the step would run in, a part of its key: if this changes, the step is
  /// run again. Called on the thread of the run.
  /// @param step <pipeline/spec.hpp> has what is in it
  virtual std::string environment(const StepSpec& step) = 0;
  /// Runs the attempt to its end. Called on a thread of its own, as many at a time as
  /// RunOptions::jobs says. An exception is a failure, too.
  /// @return nothing if it ended well
  virtual std::optional<Failure> run(const ExecutorRequest& attempt) = 0;
  virtual ~Executor() = default;
};

struct RunOptions {
  std::map<std::string, std::string> parameters = {};  ///< As `--param`.
  std::string orchestrator = "local";                  ///< `local` or `docker`.
  std::shared_ptr<Executor> executor = {};  ///< Instead of an orchestrator. Shared with the caller,
                                            ///< who may ask it for its own things later.
  std::string step = {};                    ///< Only this step and what it needs.
  unsigned jobs = 0;                        ///< Steps at a time; 0: the number of CPUs.
  bool use_cache = true;
  std::string state = {};  ///< Where runs and artifacts are kept. Default: PIPE_HOME, else `.pipe`
                           ///< in the pipeline's root.
  Function<void(const Event&)> on_event =
      {};                     ///< Called on the thread of run(), in order; must not block.
  std::stop_token stop = {};  ///< Stops the run gracefully, from any thread.
};

/// What a step has made, on this machine.
struct StoredOutput {
  std::string name;
  std::string path;  ///< Read-only.
  std::uint64_t bytes = 0;
};

struct StepResult {
  std::string name;
  StepStatus status;
  unsigned attempts = 0;
  std::chrono::milliseconds took{};
  std::optional<Failure> failure;
  std::string reused_from;  ///< The run that a cached step was reused from.
  std::vector<StoredOutput> outputs;
};

/// A run that has ended.
class RunResult {
 public:
  std::string id;
  RunStatus status = RunStatus::failed;
  std::chrono::milliseconds took{};
  std::vector<StepResult> steps;  ///< In the pipeline's order, those that belonged to the run.

  bool succeeded() const { return status == RunStatus::succeeded; }
  /// Throws std::out_of_range if the run had no such step.
  const StepResult& step(const std::string& name) const;
  /// Where the artifact is. Throws std::out_of_range if its step has not made it.
  const std::string& path(const AnyArtifact& artifact) const;
  /// The artifact itself: `result.load(model).weights`. Throws std::out_of_range, or what its codec
  /// throws.
  template <class T>
  T load(const Artifact<T>& artifact) const {
    return Codec<T>::load(path(artifact));
  }
};

/// For programs with several pipelines: if a run has started this process as a step of one of them,
/// enters it and ends the process. To be called before the first run(), which does the same for its
/// own pipeline only.
void enter_steps(std::initializer_list<const Pipeline*> pipelines);

/// Runs the pipeline to its end, on this thread. A step that fails makes no exception: it is in the
/// result. Functions are entered in processes of their own, for which the program is started again,
/// up to this call: do nothing before it that must be done only once.
/// @throws RunError if the run cannot begin
RunResult run(const Pipeline& pipeline, const RunOptions& options = {});

}  // namespace pipeline

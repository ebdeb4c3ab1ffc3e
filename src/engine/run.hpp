/// @file
/// A run from its spec to its end.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include <pipeline/events.hpp>
#include <pipeline/spec.hpp>

#include "core/cancel.hpp"
#include "engine/services.hpp"

namespace pipeline::engine {

class RemoteCache;

struct RunOptions {
  unsigned jobs = 0;  ///< Attempts at a time; 0: the number of CPUs.
  bool use_cache = true;
  bool resume = false;  ///< `run_id` is a run that was cut off: what it has done stays, what still
                        ///< runs of it is joined.
  std::string only_step;  ///< Run this step and what it needs; empty: all.
  std::string run_id;
  std::string git_commit;  ///< For the record; empty: no repository.
  bool git_dirty = false;
  std::string identity;  ///< What was asked for, for the memo (memo.hpp): file and options that
                         ///< matter; empty: none is kept.
  std::vector<std::filesystem::path>
      sources;           ///< What the spec was made from, besides the steps' code.
  bool is_task = false;  ///< An ECS task: what its containers hold at a time has to be there, they
                         ///< do not wait for one another's GPUs.
  gpu::Machine* machine = nullptr;  ///< NVML, if it is in use already; must outlive the run.
  RemoteCache* shared = nullptr;    ///< Of this and other machines; must outlive the run.
  /// Waited for before what a step's attempt has left outside is removed: then a driver that comes
  /// after this one knows of the attempt, and has what it made, though it has none of this one's
  /// files. Empty: the run store is all that is needed.
  std::function<async::Task<>()> wait_until_persisted = {};
  store::Driver driver = {};  ///< Whose Lease this process holds; without one the run is this
                              ///< process's. With resume: the run may be one of it already.
};

struct RunSummary {
  std::string run;
  RunStatus status;
  std::size_t succeeded = 0, cached = 0, failed = 0, skipped = 0, cancelled = 0;
  bool build_failed = false;
  bool environment_failed = false;
};

/// Runs the pipeline. Events reach `events` after they have been stored. Never throws for a failing
/// step; throws InputError and EnvironmentError for what keeps the run from starting.
async::Task<RunSummary> run(Services services, EventSink& events, core::CancelSource& cancel,
                            RunOptions options);

/// All that run() does before the first step begins, and what all steps run in; then records the
/// run as one of `options.driver`, which continues it by run() with `resume`. Throws BuildError,
/// too, and whatever it throws, nothing is recorded.
async::Task<> prepare_detached(Services services, EventSink& events, core::CancelSource& cancel,
                               RunOptions options);

/// What a run would do with a step.
struct StepPlan {
  std::string step;
  enum class Action {
    run,
    reuse,
    depends
  } action = Action::run;   ///< depends: reuse if what it waits for comes out as before.
  std::string reused_from;  ///< Run that made it.
  std::vector<std::string>
      changes;  ///< `code: train.py changed`, `input data: made anew by load`, `never run before`.
  std::vector<store::KeyPart> key;
  std::string environment;  ///< Description; and if it must be made ...
  std::string build;        ///< ... what will be done and why.
};
/// @param with_keys whether StepPlan::key is wanted, which takes most of the memory
async::Task<std::vector<StepPlan>> plan(Services services, RunOptions options,
                                        bool with_keys = true);

}  // namespace pipeline::engine

/// @file
/// Executes a run from its spec to its end.
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

struct EngineOptions {
  unsigned jobs = 0;  ///< Maximum number of concurrent attempts; 0: the number of CPUs.
  bool use_cache = true;
  std::vector<std::string> force = {};  ///< Steps that run although they have a result.
  std::vector<std::string> from = {};   ///< The same, with all steps that depend on them.
  bool resume = false;    ///< `run_id` is an interrupted run: its results stay, and its running
                          ///< attempts are joined.
  std::string only_step;  ///< Run only this step and its dependencies; empty: all.
  std::string run_id;
  std::string git_commit;  ///< Recorded with the run; empty: no repository.
  bool git_dirty = false;
  std::string identity;  ///< The run's request for the fingerprint (run_fingerprint.hpp): file and
                         ///< relevant options; empty: no fingerprint is stored.
  std::vector<std::filesystem::path>
      sources;  ///< Files that the spec was made from, besides the steps' code.
  /// Called when all steps have succeeded; returns further files that determine the run, such as
  /// those that it has written itself. Nothing if one of them has changed meanwhile.
  std::function<std::optional<std::vector<std::filesystem::path>>()> final_sources = {};
  bool is_task = false;  ///< An ECS task: containers that run at the same time need their GPUs
                         ///< together and do not wait for one another's.
  gpu::Machine* machine = nullptr;  ///< NVML if it is in use already; must outlive the run.
  RemoteCache* shared = nullptr;    ///< The remote cache; must outlive the run.
  /// Awaited before what an attempt has left outside is removed. Afterwards a later driver, which
  /// has none of this one's files, knows of the attempt and has its outputs. Empty: the run store
  /// suffices.
  std::function<async::Task<>()> wait_until_persisted = {};
  store::Driver driver = {};  ///< The Lease that this process holds; without one, this process is
                              ///< the driver. With resume, the run may have this driver already.
};

struct RunSummary {
  std::string run;
  RunStatus status;
  std::size_t succeeded = 0, cached = 0, failed = 0, skipped = 0, cancelled = 0;
  bool build_failed = false;
  bool environment_failed = false;
};

/// Runs the pipeline. Events are published to `events` after they are persisted. Never throws for a
/// failed step; throws InputError and EnvironmentError if the run cannot start.
async::Task<RunSummary> run(Services services, EventSink& events, core::CancelSource& cancel,
                            EngineOptions options);

/// Does everything that run() does before the first step begins, prepares all environments, and
/// records the run with `options.driver`, which continues it by run() with `resume`. Also throws
/// BuildError; if it throws, nothing is recorded.
async::Task<> prepare_detached(Services services, EventSink& events, core::CancelSource& cancel,
                               EngineOptions options);

/// What a run would do with a step.
struct StepPlan {
  std::string step;
  enum class Action {
    run,
    reuse,
    depends,
    skip,
    unknown
  } action = Action::run;  ///< depends: reused if the outputs that it waits for are the same as
                           ///< before, or skipped if a condition over them is false. unknown: the
                           ///< run makes the instances from an output that is not known yet.
  const StepSpec* spec =
      nullptr;              ///< The pipeline's step that it is, or that it is an instance of.
  std::string reused_from;  ///< The run that made it.
  std::vector<std::string>
      changes;  ///< `code: train.py changed`, `input data: made again by load`, `never run before`.
  /// What has changed where its data comes from, which a run does not take by itself.
  std::vector<std::string> notes;
  std::vector<store::KeyPart> key;
  std::string environment;  ///< Description of the environment.
  std::string build;        ///< What will be built and why, if the environment is not ready.
};
/// Plans a run without side effects. @param with_keys whether to fill StepPlan::key, which takes
/// most of the memory
async::Task<std::vector<StepPlan>> plan(Services services, EngineOptions options,
                                        bool with_keys = true);

}  // namespace pipeline::engine

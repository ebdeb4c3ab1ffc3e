/// @file
/// A pipeline with all that is needed to plan, build or run it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "cli/context.hpp"
#include "detached/detached_record.hpp"
#include "detached/drivers.hpp"
#include "engine/remote_cache.hpp"
#include "engine/run.hpp"
#include "kubernetes/kubeconfig.hpp"
#include "orchestrators/factory.hpp"
#include "s3/artifacts.hpp"
#include "spec/pipeline_file.hpp"

namespace pipeline::cli {

class Session {
  std::optional<PipelineSpec> pipeline_;  // before `runs`, which may ask for it
  bool is_task_ = false;

 public:
  /// Opens the state of the pipeline file that the options name. The file itself is read when it is
  /// asked for; at once if there is no state yet, so that a wrong file leaves none behind.
  /// @param run_id of a run that goes on; empty: of one that begins
  /// @param detached of a run that is or was to be driven elsewhere: its images are filled in, or
  /// taken from there; outlives this object
  explicit Session(Context& context, std::string run_id = {},
                   detached::DetachedRecord* detached = nullptr);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Context& context;
  const std::filesystem::path file;
  const std::string run_id;
  store::RunStore& runs;

 private:
  const store::StateLock artifacts_stay_;  ///< From before the first look at what can be reused.

 public:
  const std::unique_ptr<s3::Artifacts>
      bucket;  ///< That a profile names, for artifacts; null: none does.
  const std::unique_ptr<engine::RemoteCache> remote_cache;  ///< Through it; likewise.
  const std::unique_ptr<orchestrators::Orchestrator> orchestrator;

  const PipelineSpec& pipeline();
  /// Whether its file is an ECS task definition.
  bool is_task() { return pipeline(), is_task_; }
  /// NVML, in use from the first call on.
  gpu::Machine& machine();
  /// Nothing if there was no such call.
  gpu::Machine* machine_in_use() { return machine_.get(); }
  spec::CodeResolver& resolver();
  const engine::CodeProvider& code() const { return code_; }
  /// As the command line has it.
  engine::RunOptions run_options() const;

  /// What the spec and the choice of the code files were made from.
  std::vector<std::filesystem::path> sources();
  /// The steps that `--step` asks for, what they need included; all without it. Throws InputError
  /// for an unknown one.
  std::vector<const StepSpec*> selected_steps();

 private:
  store::RunStore& open_state();
  std::unique_ptr<gpu::Machine> machine_;
  std::optional<spec::CodeResolver> resolver_;
  void add_files(const StepSpec& step, std::vector<store::TreeEntry>& tree);
  std::map<std::pair<const spec::CodeSet*, StringMap>, std::vector<store::TreeEntry>> trees_;
  engine::CodeProvider code_;
};

/// The orchestrator of this name, on the context's loop.
std::unique_ptr<orchestrators::Orchestrator> make_orchestrator(
    Context& context, const std::string& name, orchestrators::OrchestratorOptions options);

/// Throws EnvironmentError if a step needs an engine and none answers. Costs a connection to a
/// socket.
void require_engine(Session& session);

/// Removes the folders of the attempts of a run that has no driver; what cannot be removed is a
/// note.
/// @return whether all of it is gone, or a driver has it
bool remove_work(Context& context, store::RunStore& runs, const std::string& id);

/// Runs whose driver has died become interrupted, and what they have left outside is removed.
/// Returns them.
/// @param resumed the run that is to go on: what can be joined of it stays
/// @param gone a run that is driven elsewhere, and whose driver is known to be dead
std::vector<store::RunRecord> reap_stale_runs(Context& context, store::RunStore& runs,
                                              const std::string& resumed = {},
                                              const std::string& gone = {});

/// The caller's options, with those of the recorded run in their place. Nothing if none are
/// recorded.
std::optional<Options> recorded_options(store::RunStore& runs, const std::string& run,
                                        Options caller);

/// The cluster that the options name.
kubernetes::AccessOptions cluster_of(const Options& options);

/// The run that the options name, with what its driver has saved elsewhere by now. Throws
/// InputError if there is none.
store::RunRecord find_run(const Context& context, detached::Drivers& drivers,
                          store::RunStore& runs);

}  // namespace pipeline::cli

/// @file
/// A pipeline with everything that is needed to plan, build or run it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "blobs/remote_artifacts.hpp"
#include "driver/detached_record.hpp"
#include "driver/drivers.hpp"
#include "driver/pipeline_source.hpp"
#include "driver/workspace.hpp"
#include "engine/cache/remote_cache.hpp"
#include "engine/run.hpp"
#include "kubernetes_api/kubeconfig.hpp"
#include "lockfile/lock_file.hpp"
#include "orchestrators/registry/registry.hpp"
#include "orchestrators/routes.hpp"

namespace pipeline::driver {

class Session {
 public:
  /// Opens the state folder of the pipeline file that the options name. If there is no state folder
  /// yet, the pipeline is read first, so that an invalid file leaves none behind.
  /// @param run_id the run to resume; empty: a new run
  /// @param detached record of a detached run, which receives the run's images or provides them;
  /// outlives this object
  explicit Session(Workspace& workspace, std::string run_id = {},
                   DetachedRecord* detached = nullptr);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Workspace& workspace;
  PipelineSource source;
  const std::string run_id;
  store::RunStore& store;

  const PipelineSpec& pipeline() { return source.pipeline(); }
  orchestrators::Routes& routes() { return routes_; }
  lockfile::LockFile& lock() { return lock_; }
  /// Removes the entries of the lock file that no step uses any more, if all steps were looked up,
  /// and returns the file; nothing if another program has changed it.
  std::optional<std::vector<std::filesystem::path>> settle_lock();
  /// Returns the remote store that a profile names; null: none.
  blobs::RemoteArtifacts* remote_store() { return remote_store_.get(); }
  /// Returns the results that are shared through the remote store; null: none.
  engine::RemoteCache* remote_cache() { return remote_cache_.get(); }
  /// Returns NVML, which is loaded by the first call.
  gpu::Machine& machine();
  /// Returns null if machine() has not been called.
  gpu::Machine* machine_in_use() { return machine_.get(); }
  /// Returns the objects that runs and plans of this pipeline use.
  engine::Services services(const PipelineSpec& pipeline) {
    return {pipeline,          routes_, store,  workspace.artifacts(),
            workspace.stats(), code_,   &lock_, &workspace.options().remote_store};
  }
  engine::Services services() { return services(pipeline()); }
  /// Returns the options of the command line for the engine. Throws InputError if `--until` leaves
  /// out a step of `--force` or `--from`.
  engine::EngineOptions run_options();

 private:
  /// Prevents the removal of artifacts; taken before the first check whether a result is reused.
  const store::StateLock artifacts_lock_;
  const engine::CodeProvider code_;
  lockfile::LockFile lock_;
  const std::unique_ptr<blobs::RemoteArtifacts> remote_store_;
  const std::unique_ptr<engine::RemoteCache> remote_cache_;
  orchestrators::Routes routes_;
  std::unique_ptr<gpu::Machine> machine_;
};

/// Creates the orchestrator of this name on the workspace's loop.
std::unique_ptr<orchestrators::Orchestrator> make_orchestrator(
    Workspace& workspace, const std::string& name, orchestrators::OrchestratorOptions options);

/// Throws EnvironmentError if a step needs an engine and none responds on its socket.
void require_engine(Session& session);

/// Returns the caller's options with the recorded invocation of the run; nothing if the run has
/// recorded none.
std::optional<WorkspaceOptions> recorded_options(store::RunStore& store, const std::string& run,
                                                 WorkspaceOptions caller);

/// Returns the cluster that the options name.
kubernetes_api::AccessOptions cluster_of(const WorkspaceOptions& options);

/// Returns the run of this name, updated with what its driver has saved to its replica.
/// Throws InputError if there is none.
store::RunRecord find_run(const Workspace& workspace, const std::string& name, Drivers& drivers,
                          store::RunStore& store);

}  // namespace pipeline::driver

/// @file
/// Creates orchestrators by name.
#pragma once

#include "orchestrators/containers/image_lock.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::lockfile {
class LockFile;
}
namespace pipeline::s3 {
class BucketArtifacts;
}

namespace pipeline::orchestrators {

struct OrchestratorOptions {
  std::filesystem::path root;  ///< The pipeline's folder.
  std::filesystem::path
      state;  ///< The store's folder, for files of an orchestrator (virtual environments).
  std::filesystem::path template_dir;  ///< Overrides the embedded templates.
  std::string run_id;
  lockfile::LockFile* lock = nullptr;  ///< Of the pipeline's Python packages; outlives the
                                       ///< orchestrator. Null: installers choose versions.
  std::string context, name_space;     ///< Of the cluster; if empty, the kubeconfig's.
  std::string claim;  ///< PersistentVolumeClaim that contains `claim_path`, in which `state` is; if
                      ///< empty, nodes see the folder itself.
  std::filesystem::path claim_path;
  s3::BucketArtifacts* artifacts = nullptr;  ///< The bucket through which pods exchange files,
                                             ///< instead of a claim; outlives the orchestrator.
  std::string owner;                         ///< Owner of the Jobs, if it differs from owner_of().
  ImageLock* images = nullptr;  ///< Images of a cluster's steps. If empty, prepare() fills it;
                                ///< otherwise its images are used, and no engine is contacted.
};

std::unique_ptr<Orchestrator> make_local_orchestrator(asio::io_context& loop,
                                                      OrchestratorOptions options);
std::unique_ptr<Orchestrator> make_docker_orchestrator(asio::io_context& loop,
                                                       OrchestratorOptions options);
std::unique_ptr<Orchestrator> make_kubernetes_orchestrator(asio::io_context& loop,
                                                           OrchestratorOptions options);

}  // namespace pipeline::orchestrators

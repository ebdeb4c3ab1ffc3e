/// @file
/// The orchestrators by name.
#pragma once

#include "orchestrators/image_lock.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::s3 {
class Artifacts;
}

namespace pipeline::orchestrators {

struct OrchestratorOptions {
  std::filesystem::path root;  ///< The pipeline's folder.
  std::filesystem::path
      state;  ///< The store's folder, for what an orchestrator keeps itself (virtual environments).
  std::filesystem::path template_dir;  ///< Overrides the embedded templates.
  std::string run_id;
  std::string context, name_space;  ///< Of the cluster; empty: as the kubeconfig has them.
  std::string claim;  ///< PersistentVolumeClaim that holds `claim_path`, in which `state` is;
                      ///< empty: nodes see the folder itself.
  std::filesystem::path claim_path;
  s3::Artifacts* artifacts = nullptr;  ///< Through which pods get files and give them back, in the
                                       ///< place of a claim; outlives the orchestrator.
  std::string owner;  ///< Whose Jobs these are, where owner_of() would say something else; empty:
                      ///< it is right.
  ImageLock* images = nullptr;  ///< Of a cluster's steps. Empty: filled by prepare(); else what is
                                ///< in it is what they run in, and no engine is asked.
};

std::unique_ptr<Orchestrator> make_local_orchestrator(asio::io_context& loop,
                                                      OrchestratorOptions options);
std::unique_ptr<Orchestrator> make_docker_orchestrator(asio::io_context& loop,
                                                       OrchestratorOptions options);
std::unique_ptr<Orchestrator> make_kubernetes_orchestrator(asio::io_context& loop,
                                                           OrchestratorOptions options);

}  // namespace pipeline::orchestrators

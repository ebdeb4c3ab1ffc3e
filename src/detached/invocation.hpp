/// @file
/// The request of a run as it was made, recorded with the run: a resumed run continues by it, and
/// what the run leaves behind is looked for by it.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "settings/artifact_store.hpp"
#include "store/run_store.hpp"

namespace pipeline::detached {

struct Invocation {
  std::filesystem::path file = "pipeline.yaml";
  std::filesystem::path root;  ///< Takes the place of a C++ program's own root; empty: it does not.
  std::map<std::string, std::string> parameters;  ///< As `--param`.
  std::string profile;                            ///< Empty: none.
  std::string orchestrator = "docker";
  std::string context, name_space;   ///< Of the cluster; empty: as the kubeconfig has them.
  std::string claim;                 ///< Volume claim through which pods see the state folder.
  std::filesystem::path claim_path;  ///< Folder on this machine that the claim holds.
  settings::ArtifactStoreSettings artifact_store;  ///< Bucket of the run; may not be given.
  std::string step;            ///< Only this step and its dependencies; empty: all.
  std::string execution_mode;  ///< Empty: the file's.
  unsigned jobs = 0;           ///< Attempts at a time; 0: the number of CPUs.
  bool no_cache = false;
  std::filesystem::path template_dir;  ///< Overrides the embedded templates; empty: it does not.
};

/// Records the invocation of a run, with a schema version; paths are made absolute.
void keep_invocation(store::RunStore& runs, const std::string& run, const Invocation& invocation);

/// The recorded invocation; nothing if there is none, or a later version of pipe has written it.
std::optional<Invocation> invocation_of(store::RunStore& runs, const std::string& run);

}  // namespace pipeline::detached

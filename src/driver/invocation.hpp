/// @file
/// The request of a run as the user made it, recorded with the run. Resuming the run and removing
/// its remains read it.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <pipeline/settings.hpp>

#include "settings/remote_store.hpp"
#include "store/run_store.hpp"

namespace pipeline::driver {

struct Invocation {
  std::filesystem::path file = "pipeline.yaml";
  std::filesystem::path root;  ///< Replaces a C++ program's own root, unless empty.
  std::map<std::string, std::string> parameters;  ///< Values of `--param`, by name.
  /// `FILE:LINE:COLUMN` of each parameter that a file gives, by name; for messages, not recorded.
  std::map<std::string, std::string> parameter_places = {};
  std::string profile;  ///< Empty: none.
  std::string orchestrator = "docker";
  StringMap connection;  ///< Keyed by the names of the orchestrators' fields (ConnectionField).
  settings::RemoteStoreSettings remote_store;  ///< The run's remote store; may be unset.
  std::string step;            ///< Run only this step and its dependencies; empty: all.
  std::string execution_mode;  ///< Empty: the file's mode.
  unsigned jobs = 0;           ///< Maximum number of concurrent attempts; 0: the number of CPUs.
  bool no_cache = false;
  std::vector<std::string> force;      ///< Steps that run although they have a result.
  std::vector<std::string> from;       ///< As `force`, with all steps that depend on them.
  std::filesystem::path template_dir;  ///< Overrides the embedded templates; empty: none.
};

/// Records the invocation of a run, with a schema version; paths are made absolute.
void keep_invocation(store::RunStore& store, const std::string& run, const Invocation& invocation);

/// Returns the recorded invocation; nothing if there is none or a later version of pipe wrote it.
std::optional<Invocation> invocation_of(store::RunStore& store, const std::string& run);

}  // namespace pipeline::driver

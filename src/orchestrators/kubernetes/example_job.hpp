/// @file
/// A step's Job without a run, for users to read and for a cluster to validate. Values that only a
/// run has are placeholders in capitals.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include <nlohmann/json.hpp>

#include "orchestrators/kubernetes/manifest.hpp"

namespace pipeline::orchestrators::kubernetes {

struct ExampleJobOptions {
  std::string pipeline = "PIPELINE";
  std::filesystem::path state;  ///< Folder of the runs.
  SharedClaim claim = {};
  std::string image = "pipe:env-DIGEST";
  bool pull = false;
  std::string agent_image = {};  ///< If empty, the agent is a file of this machine.
  bool has_stager = false;       ///< See JobOptions::has_stager.
  NodeCache node_cache = {};
  std::string user = {};  ///< See JobOptions::user; empty: the caller.
  GpuModels gpu_models = {};
  /// Returns the file name of the earlier step's output; if unset, the input's name is used.
  std::function<std::string(const InputSpec&)> file_name_of = {};
};

/// Returns the step's Job. Throws InputError for a setting that no cluster can honour.
nlohmann::json example_job(const StepSpec& step, const ExampleJobOptions& options);

}  // namespace pipeline::orchestrators::kubernetes

/// @file
/// The Job of a step before there is a run: for people to read, and for a cluster to check. What
/// only a run knows is written in capitals.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include <nlohmann/json.hpp>

#include "orchestrators/kubernetes/manifest.hpp"

namespace pipeline::orchestrators {

struct ExampleJobOptions {
  std::string pipeline = "PIPELINE";
  std::filesystem::path state;  ///< Folder of the runs.
  SharedClaim claim = {};
  std::string image = "pipe:env-DIGEST";
  bool pull = false;
  std::string agent_image = {};  ///< Empty: the agent is a file of this machine.
  bool carries = false;          ///< JobOptions::carries
  GpuModels gpu_models = {};
  /// What the step before calls the file; empty: as the input is called.
  std::function<std::string(const InputSpec&)> file_name_of = {};
};

/// Throws InputError for what a cluster cannot do.
nlohmann::json example_job(const StepSpec& step, const ExampleJobOptions& place);

}  // namespace pipeline::orchestrators

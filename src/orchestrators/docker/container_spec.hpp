/// @file
/// The container of an attempt, as the engine wants it described. Pure: nothing is asked, nothing
/// is done.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "docker/gpu_access.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators {

/// What a container is like besides the attempt that runs in it.
struct ContainerOptions {
  std::string image;           ///< Reference or identifier.
  std::filesystem::path root;  ///< Folder that relative volumes are taken from.
  std::filesystem::path home;  ///< What `~` in a volume stands for.
  std::string user;            ///< UID:GID of the caller, for a step that names no user.
  std::string owner;           ///< Whose containers these are: value of the label pipe.state.
  std::vector<std::string> program =
      {};                  ///< For a step with StepSpec::program: the words that start it here.
  bool elsewhere = false;  ///< The engine does not see this machine's files: a volume takes the
                           ///< place of the mounts, and files are copied.
  Bytes memory = 0;        ///< Of the engine's machine; 0: unknown.
  docker::GpuAccess* gpu_access = nullptr;  ///< For an attempt that holds GPUs.
  bool gate = false;  ///< nvidia-smi has to find these GPUs before the command starts.
};

/// The one folder of ours in a container, and the one in it that HOME is.
inline const std::string container_folder = "/pipe", container_scratch = "/pipe/scratch";
/// Where a step finds its files in its container.
const Layout& container_layout();
/// `pipe-RUN-STEP-ATTEMPT`
std::string container_name(const Attempt& attempt);
/// What tells this attempt's container from all others.
StringMap container_labels(const Attempt& attempt, const ContainerOptions& place);
/// Names the GPUs that a container occupies, so that others can tell when its driver is dead: UUIDs
/// with commas between.
inline constexpr const char* gpus_label = "pipe.gpus";
std::string gpus_text(const std::vector<AssignedGpu>& gpus);
/// Body of POST /containers/create. Holds the secrets' values: not to be shown.
nlohmann::json container_body(const Attempt& attempt, const ContainerOptions& place);
/// A folder under `docker.volumes` that this machine, the engine's, does not have.
std::optional<Failure> missing_volume(const StepSpec& step, const ContainerOptions& place);
/// The part of the settings that changes what a step does in an equal image, as one text for a
/// digest.
std::string runtime_part(const DockerSettings& settings);

}  // namespace pipeline::orchestrators

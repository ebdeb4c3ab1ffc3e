/// @file
/// The description of an attempt's container for the engine. Pure: makes no requests.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "docker/gpu_access.hpp"
#include "orchestrators/containers/container_layout.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators::docker_engine {

/// The properties of a container that do not depend on the attempt.
struct ContainerOptions {
  std::string image;           ///< Reference or identifier.
  std::filesystem::path root;  ///< Folder against which relative volumes are resolved.
  std::filesystem::path home;  ///< Replaces `~` in a volume.
  std::string user;            ///< UID:GID of the invoking user, for a step that names no user.
  std::string user_name = {};  ///< Value of USER and LOGNAME; empty: they are not set.
  /// File on this machine that is the container's /etc/passwd; empty: the image's own.
  std::filesystem::path passwd = {};
  std::filesystem::path init = {};  ///< File on this machine of init_program(); may be empty.
  std::string owner;                ///< Owner of the containers: value of the label pipe.state.
  /// For a step with StepSpec::program: the command that starts the program in the container.
  std::vector<std::string> program = {};
  /// The engine does not see this machine's files, or its containers' users may not use them:
  /// a volume replaces the mounts, and files are copied.
  bool elsewhere = false;
  Bytes memory = 0;          ///< Memory of the engine's machine; 0: unknown.
  std::string network = {};  ///< Network of the attempt's services or nodes; empty: it has none.
  std::string address = {};  ///< Address in `network`; empty: the engine chooses.
  docker::GpuAccess* gpu_access = nullptr;  ///< Set for an attempt that holds GPUs.
  bool gate = false;  ///< The preflight's gate must find the GPUs before the command starts.
};

/// Returns the method by which the engine is asked for the attempt's GPUs; nothing if the attempt
/// holds none, or its step demands the method.
std::optional<docker::GpuMethod> replaceable_gpu_method(const AttemptSpec& attempt,
                                                        const ContainerOptions& options);

/// Label with the rank of a process of a step with nodes.
inline constexpr const char* rank_label = "pipe.rank";

/// Returns the EndpointSettings (Docker's API) that give a container this address in a network.
nlohmann::json endpoint_at(const std::string& address);
/// Returns `pipe-RUN-STEP-ATTEMPT`, with `-RANK` for a process of a step with nodes.
std::string container_name(const AttemptSpec& attempt);
/// Returns the labels that identify this attempt's container.
StringMap container_labels(const AttemptSpec& attempt, const ContainerOptions& options);
/// Returns container_labels() as `NAME=VALUE`, the filters by which the engine lists containers and
/// networks of the attempt.
std::vector<std::string> label_filters(const AttemptSpec& attempt, const ContainerOptions& options);
/// Label with the UUIDs of a container's GPUs, separated by commas; shows which GPUs are in use
/// after the driver's death.
inline constexpr const char* gpus_label = "pipe.gpus";
/// Returns the value of gpus_label.
std::string gpus_text(const std::vector<AssignedGpu>& gpus);
/// Returns the mounts of the files that the attempt only reads: its code, inputs and the init
/// program, or the volume that they are copied into.
nlohmann::json read_only_mounts(const AttemptSpec& attempt, const ContainerOptions& options);
/// Adds the attempt's GPUs to the body of a container.
void add_gpus(nlohmann::json& body, const AttemptSpec& attempt, const ContainerOptions& options);
/// Returns the body of POST /containers/create, which has secrets and must not be shown.
nlohmann::json container_body(const AttemptSpec& attempt, const ContainerOptions& options);
/// Returns a failure if a folder of `docker.volumes` does not exist on this machine; for engines
/// that run here.
std::optional<Failure> missing_volume(const StepSpec& step, const ContainerOptions& options);

}  // namespace pipeline::orchestrators::docker_engine

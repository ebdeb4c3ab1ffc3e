/// @file
/// The settings of a pipeline or of one of its steps. The names are ZenML's, unless a comment names
/// another source. Every field is optional. An empty field has the pipeline's value or, if that is
/// empty, too, the default that its comment names.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <pipeline/duration.hpp>
#include <pipeline/json.hpp>

namespace pipeline {

using StringMap = std::map<std::string, std::string>;

/// A size in bytes, as in `8_GiB`.
using Bytes = std::uint64_t;

/// A list that may be absent. A step's list replaces the pipeline's, even if it is empty: `{}` is
/// the absent list, StringList::none() the empty one.
struct StringList : std::optional<std::vector<std::string>> {
  using optional::optional;
  StringList(std::initializer_list<std::string> items)
      : optional(std::vector<std::string>(items)) {}
  static StringList none() { return StringList(std::vector<std::string>()); }
  /// The items; none if the list is absent.
  const std::vector<std::string>& items() const {
    static const std::vector<std::string> none;
    return has_value() ? **this : none;
  }
};

/// Options of the engine's build call (POST /build).
struct BuildOptions {
  /// Look for a newer parent image before the build. Default: only if the engine lacks it.
  std::optional<bool> pull = {};
  /// Classic builder: remove intermediate containers. Default: true.
  std::optional<bool> rm = {};
  /// Ignore the builder's layer cache.
  std::optional<bool> no_cache = {};
  /// /dev/shm of the build's containers, bytes.
  std::optional<Bytes> shm_size = {};
  /// Labels of the image.
  StringMap labels = {};
  /// ARG values; they are visible in the image's history, so they must not be secrets.
  StringMap build_args = {};
  /// Images whose layers may be reused.
  StringList cache_from = {};
  /// Stage of a `dockerfile` to stop at.
  std::optional<std::string> target = {};
  /// Network mode of the build's containers.
  std::optional<std::string> network = {};
  /// `name:address` entries for the build's /etc/hosts.
  StringList extra_hosts = {};
};

/// How an image is built.
struct BuildConfig {
  BuildOptions build_options = {};
  /// File with ignore rules; default: the build context's .dockerignore.
  std::optional<std::string> dockerignore = {};
};

/// Program that installs Python packages in an image.
enum class PackageInstaller { uv, pip };

/// How the image of a step is built, and how its container is started.
struct DockerSettings {
  /// Image that the generated Dockerfile starts FROM.
  std::optional<std::string> parent_image = {};
  /// Path of a Dockerfile that is built first; the result is the parent image.
  std::optional<std::string> dockerfile = {};
  /// Folder sent as the context of `dockerfile`. Default: the Dockerfile's folder.
  std::optional<std::string> build_context_root = {};
  /// Build options of `dockerfile`.
  BuildConfig parent_image_build_config = {};
  /// Build options of the generated Dockerfile.
  BuildConfig build_config = {};
  /// Use `parent_image` without changes.
  std::optional<bool> skip_build = {};
  /// Build once in every run, even if an equal image exists.
  std::optional<bool> prevent_build_reuse = {};
  /// Repository name of built images. Default: `pipe`.
  std::optional<std::string> target_repository = {};
  /// Tag of the built image, besides the tag that is its digest.
  std::optional<std::string> image_tag = {};
  /// Default: uv.
  std::optional<PackageInstaller> python_package_installer = {};
  /// Long options of the installer: `{index-url: ..., no-deps: true}`.
  std::map<std::string, Json> python_package_installer_args = {};
  /// Install what `pip freeze` lists in the invoking user's environment.
  std::optional<bool> replicate_local_python_environment = {};
  /// Python requirements; in YAML a list, or the name of a requirements file.
  StringList requirements = {};
  /// pyproject.toml whose dependencies are installed.
  std::optional<std::string> pyproject_path = {};
  /// Command that prints the requirements of `pyproject_path`. Default: the file is read.
  StringList pyproject_export_command = {};
  /// Shell command run in the image, in a copy of the step's code.
  std::optional<std::string> local_project_install_command = {};
  /// Debian packages.
  StringList apt_packages = {};
  /// Date as of which Debian packages are installed: `2026-11-01`, or `2026-11-01T12:00:00Z`.
  std::optional<std::string> apt_snapshot = {};
  /// ENV of the image, set before anything is installed.
  StringMap environment = {};
  /// Variables of the step's container or process, but not of the image.
  StringMap runtime_environment = {};
  /// User that the step runs as: NAME, UID or UID:GID; created if the parent lacks it.
  std::optional<std::string> user = {};
  /// `SOURCE:TARGET[:ro|rw]`.
  StringList volumes = {};
  /// Network mode of the container: bridge, host, none, or a network's name.
  std::optional<std::string> network = {};
  /// `os/arch[/variant]` of image and container.
  std::optional<std::string> platform = {};
  /// Labels of the container.
  StringMap labels = {};
  /// Further container options, named as in docker's SDK (cap_add, devices, ...).
  std::map<std::string, Json> run_args = {};
};

/// Lightning's `accelerator`.
enum class Accelerator {
  cpu,
  gpu,
  automatic,  ///< `auto` in YAML: GPUs if the machine has them.
};

/// The notation in which CUDA_VISIBLE_DEVICES names a step's GPUs.
enum class GpuIds { uuid, index };

/// Whether a GPU step checks its GPUs before its command runs.
enum class Preflight { off, on };

/// A step's requirements of the machine that it runs on. The number of GPUs is given in one of
/// three ways: `gpu_count`, `devices` or `gpus`.
struct ResourceSettings {
  /// CPUs; greater than 0, fractions allowed.
  std::optional<double> cpu_count = {};
  /// Hard limit, bytes.
  std::optional<Bytes> memory = {};
  /// /dev/shm, bytes.
  std::optional<Bytes> shm_size = {};
  /// GPUs that are reserved for the step.
  std::optional<unsigned> gpu_count = {};
  /// Lightning's option; `gpu` without a number means all GPUs.
  std::optional<Accelerator> accelerator = {};
  /// Lightning's option: a whole number, a text such as `"1, 3"`, or a list; null: not given.
  Json devices = {};
  /// Lightning's option: choose GPUs that no process uses.
  std::optional<bool> auto_select_gpus = {};
  /// The option of docker and GitLab: `all`, `2`, `device=0,1`, ...
  std::optional<std::string> gpus = {};
  /// Words of the model's name, such as `A100` or `RTX 4090`.
  std::optional<std::string> gpu_class = {};
  /// Minimum memory of each GPU, bytes.
  std::optional<Bytes> gpu_memory = {};
  /// Minimum compute capability of each GPU, such as `8.0`.
  std::optional<std::string> compute_capability = {};
  /// Amazon EC2 instance type that the step is meant for, such as `g5.xlarge`.
  std::optional<std::string> instance_type = {};
  /// Expressions of ECS's cluster query language that the host must satisfy.
  StringList placement_constraints = {};
  /// How CUDA_VISIBLE_DEVICES names the step's GPUs. Default: `uuid` for processes; unset in
  /// containers, which see no other GPUs.
  std::optional<GpuIds> gpu_ids = {};
  /// Whether a GPU step runs nvidia-smi before its command. Default: on.
  std::optional<Preflight> preflight = {};
};

/// Amounts in Kubernetes' notation, by resource: `{{"cpu", "500m"}, {"memory", "8Gi"},
/// {"ephemeral-storage", "20Gi"}, {"example.com/fpga", "1"}}`.
struct KubernetesResources {
  StringMap requests = {};  ///< Reserved for the step. Default: the limits.
  StringMap limits = {};    ///< Maximum that the step may use.
};

/// A label of Kueue's topologies, such as "cloud.provider.com/topology-rack": the pods of a step
/// get nodes that have the same value of it. At most one of the two members is set.
struct KubernetesTopology {
  std::optional<std::string> required = {};   ///< The step waits until there are such nodes.
  std::optional<std::string> preferred = {};  ///< Without such nodes the step gets other nodes.
};

/// A step's Job on a Kubernetes cluster, beyond `docker` and `resources`; other orchestrators
/// ignore it. The names are those of ZenML's KubernetesPodSettings, otherwise Kubernetes' own. A
/// Json is an object as Kubernetes defines it, or the short form that its comment names.
struct KubernetesSettings {
  /// Labels that the node must have.
  StringMap node_selectors = {};
  /// Kubernetes' Affinity.
  std::map<std::string, Json> affinity = {};
  /// Taints that the node may have, `"KEY[=VALUE][:EFFECT]"`; those of GPUs are always tolerated.
  Json tolerations = {};
  /// Amounts that take precedence over those of settings.resources.
  KubernetesResources resources = {};
  /// Kubernetes' name of the GPUs in settings.resources. Default: nvidia.com/gpu.
  std::optional<std::string> gpu_resource = {};
  /// A list of `"NAME=secret/OBJECT/KEY"`, `"NAME=configmap/OBJECT/KEY"`. Plain values belong in
  /// the step's environment.
  Json env = {};
  /// A list of `"secret/OBJECT"`, `"configmap/OBJECT"`.
  Json env_from = {};
  /// A list of `"pvc/CLAIM:TARGET[:ro|rw]"`, `"secret/OBJECT:TARGET"`, `"configmap/OBJECT:TARGET"`.
  Json volumes = {};
  /// A list: mount paths of the volumes that are given as objects.
  Json volume_mounts = {};
  /// Secrets with the credentials of the images' registries.
  StringList image_pull_secrets = {};
  /// Service account whose token the pod has. Default: none.
  std::optional<std::string> service_account_name = {};
  /// Labels and annotations of Job and pod.
  StringMap labels = {}, annotations = {};
  std::optional<std::string> priority_class_name = {};
  std::optional<std::string> runtime_class_name = {};
  /// Default: the cluster's own.
  std::optional<std::string> scheduler_name = {};
  /// Kueue's local queue for the Job.
  std::optional<std::string> queue_name = {};
  /// Nodes that are near one another, chosen by Kueue; only with queue_name.
  KubernetesTopology topology = {};
  std::map<std::string, Json> container_security_context = {}, pod_security_context = {};
  std::optional<bool> host_ipc = {};
  /// Whether the cluster adds nodes as needed, so that a missing node is not an error. Default:
  /// false.
  std::optional<bool> autoscaling = {};
  /// Time after which a pod that has not started fails. Default: 10 min.
  std::optional<Duration> pod_startup_timeout = {};
  /// Time after which the cluster ends the Job. Default: 5 min more than the step's timeout, which
  /// the driver enforces.
  std::optional<unsigned> active_deadline_seconds = {};
  /// Time after which the cluster removes an ended Job. Default: a day.
  std::optional<unsigned> ttl_seconds_after_finished = {};
  /// Merged into the pod's spec.
  std::map<std::string, Json> additional_pod_spec_args = {};
  /// Merged into the Job last: a JSON merge patch that matches items of lists by `name`.
  std::map<std::string, Json> job_patch = {};
};

/// A step's job of Slurm, beyond `resources`; other orchestrators ignore it. The names are those of
/// sbatch. A value takes precedence over the value that a profile or the command line has under the
/// same name.
struct SlurmSettings {
  /// Partitions, separated by commas: the first that can start the job. Default: the cluster's.
  std::optional<std::string> partition = {};
  std::optional<std::string> account = {}, qos = {};
  /// Features that the node must have, such as `a100&nvlink`.
  std::optional<std::string> constraint = {};
  std::optional<std::string> reservation = {};
  /// Nodes that the job must not have, such as `node[1-3],node7`.
  std::optional<std::string> exclude = {};
  /// A whole number; jobs with a higher number wait longer.
  std::optional<std::string> nice = {};
  /// Slurm's limit of the job. Default: two minutes more than the step's timeout.
  std::optional<Duration> time = {};
  /// Further options of sbatch, `"--exclusive"`, `"--licenses=matlab:1"`.
  StringList extra_args = {};
};

/// A number to multiply with, `x2` in YAML.
struct Factor {
  double value = 1;
  constexpr Factor(double factor) : value(factor) {}
};

/// An attempt that was ended for lack of memory is retried with more memory, until `max` is
/// reached. These retries do not count towards `max_retries`.
struct OomRetry {
  /// Factor above 1 by which the memory grows. Default: 2.
  std::optional<Factor> memory = {};
  /// Maximum for an attempt, bytes.
  std::optional<Bytes> max = {};
};

/// A failed attempt is retried up to `max_retries` times, after delay, delay*backoff,
/// delay*backoff², ...
struct RetrySettings {
  /// Default: 0.
  std::optional<unsigned> max_retries = {};
  /// Failures that are retried: `exit 75`, `signal 9`, a FailureKind such as `out_of_memory` or
  /// `timeout`, or a text of the output, `CUDA error`. Default: all.
  StringList on = {};
  /// Failures that are not retried, in the same form; `on` has no effect on them.
  StringList never = {};
  /// Prefer other nodes and GPUs than those of the step's failed attempts. Default: false.
  std::optional<bool> avoid_failed = {};
  /// Default: 0 s.
  std::optional<Duration> delay = {};
  /// At least 1. Default: 1.
  std::optional<double> backoff = {};
  /// Retries after failures for reasons outside the step. Default: 3; 0 for local processes.
  std::optional<unsigned> max_infrastructure_retries = {};
  /// More memory for the next attempt after one that reached its memory limit.
  OomRetry on_oom = {};
  /// End an attempt that has stalled (StepSpec::stalled_after), and retry the step. Default: false.
  std::optional<bool> stalled = {};
};

/// The `settings:` of a pipeline or step.
struct Settings {
  DockerSettings docker = {};
  ResourceSettings resources = {};
  KubernetesSettings kubernetes = {};
  SlurmSettings slurm = {};
};

}  // namespace pipeline

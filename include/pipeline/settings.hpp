/// @file
/// What a user may set for a pipeline or for one of its steps. Names are ZenML's, so that a user's
/// knowledge carries over. Every field is optional: an empty one takes the pipeline's value, and
/// where that is empty too, the default that its comment names.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <pipeline/chrono.hpp>
#include <pipeline/json.hpp>

namespace pipeline {

using Duration = std::chrono::milliseconds;
using StringMap = std::map<std::string, std::string>;

/// A size in bytes, as in `8_GiB`.
using Bytes = std::uint64_t;

/// A list that knows whether it was given: a step's list replaces the pipeline's, also when it is
/// empty.
struct StringList : std::optional<std::vector<std::string>> {
  using optional::optional;
  StringList(std::initializer_list<std::string> items)
      : optional(std::vector<std::string>(items)) {}
  /// The items, none when the list was not given.
  const std::vector<std::string>& items() const;
};

/// Options of the engine's build call (POST /build).
struct BuildOptions {
  std::optional<bool> pull;  ///< Look for a newer parent image before the build. Default: only when
                             ///< the engine lacks it.
  std::optional<bool> rm;    ///< Classic builder: remove intermediate containers. Default: true.
  std::optional<bool> no_cache;   ///< Ignore the builder's layer cache.
  std::optional<Bytes> shm_size;  ///< /dev/shm of the build's containers, bytes.
  StringMap labels;               ///< Labels of the image.
  StringMap build_args;           ///< ARG values; they show in the image's history, so no secrets.
  StringList cache_from;          ///< Images whose layers may be reused.
  std::optional<std::string> target;   ///< Stage of a `dockerfile` to stop at.
  std::optional<std::string> network;  ///< Network mode of the build's containers.
  StringList extra_hosts;              ///< `name:address` entries for the build's /etc/hosts.
};

struct BuildConfig {
  BuildOptions build_options;
  std::optional<std::string>
      dockerignore;  ///< File with ignore rules; default: the build context's .dockerignore.
};

enum class PackageInstaller { uv, pip };

/// How the image of a step is made, and how its container is started.
struct DockerSettings {
  std::optional<std::string> parent_image;  ///< Image that the generated Dockerfile starts FROM.
  std::optional<std::string>
      dockerfile;  ///< A Dockerfile of the user's own, built first; the result is the parent.
  std::optional<std::string> build_context_root;  ///< Folder sent as the context of `dockerfile`.
                                                  ///< Default: the Dockerfile's folder.
  BuildConfig parent_image_build_config;          ///< Build options of `dockerfile`.
  BuildConfig build_config;                       ///< Build options of the generated Dockerfile.
  std::optional<bool> skip_build;                 ///< Run `parent_image` as it is.
  std::optional<bool>
      prevent_build_reuse;  ///< Build anew, once a run, even if an equal image exists.
  std::optional<std::string>
      target_repository;  ///< Repository name of built images. Default: `pipe`.
  std::optional<std::string>
      image_tag;  ///< Tag of the built image, besides the tag that is its digest.
  std::optional<PackageInstaller> python_package_installer;  ///< Default: uv.
  std::map<std::string, Json>
      python_package_installer_args;  ///< Long options of the installer: `{index-url: ..., no-deps:
                                      ///< true}`.
  std::optional<bool> replicate_local_python_environment;  ///< Install what `pip freeze` lists in
                                                           ///< the caller's environment.
  StringList
      requirements;  ///< Python requirements; in YAML a list, or the name of a requirements file.
  std::optional<std::string> pyproject_path;  ///< pyproject.toml whose dependencies are installed.
  StringList pyproject_export_command;  ///< Command that prints requirements for `pyproject_path`,
                                        ///< instead of reading it.
  std::optional<std::string> local_project_install_command;  ///< Shell command run in the image, in
                                                             ///< a copy of the step's code.
  StringList apt_packages;                                   ///< Debian packages.
  StringMap environment;  ///< ENV of the image, set before anything is installed.
  StringMap
      runtime_environment;  ///< Variables of the step's container or process; no part of the image.
  std::optional<std::string>
      user;  ///< User that the step runs as: NAME, UID or UID:GID; created if the parent lacks it.
  StringList volumes;  ///< `SOURCE:TARGET[:ro|rw]`.
  std::optional<std::string>
      network;  ///< Network mode of the container: bridge, host, none, or a network's name.
  std::optional<std::string> platform;  ///< `os/arch[/variant]` of image and container.
  StringMap labels;                     ///< Labels of the container.
  std::map<std::string, Json>
      run_args;  ///< Further container options, named as in docker's SDK (cap_add, devices, ...).
};

enum class Accelerator {
  cpu,
  gpu,
  automatic,  ///< `auto`: GPUs where the machine has them.
};

enum class Preflight { off, on };

/// What a step needs of the machine that it runs on. How many GPUs is said in one of three ways:
/// `gpu_count`, `devices` or `gpus`; gpu_request() (settings/accelerator.hpp) makes one request of
/// them.
struct ResourceSettings {
  std::optional<double> cpu_count;         ///< CPUs, fractions allowed; > 0.
  std::optional<Bytes> memory;             ///< Hard limit, bytes.
  std::optional<Bytes> shm_size;           ///< /dev/shm, bytes.
  std::optional<unsigned> gpu_count;       ///< GPUs held by the step alone (ZenML).
  std::optional<Accelerator> accelerator;  ///< Lightning's; `gpu` without a number means all.
  Json devices;  ///< Lightning's: a whole number, a text such as `"1, 3"`, or a list; null: not
                 ///< given.
  std::optional<bool> auto_select_gpus;  ///< Lightning's: pick GPUs that no process occupies.
  std::optional<std::string> gpus;  ///< docker's and GitLab's option: `all`, `2`, `device=0,1`, ...
  std::optional<std::string> gpu_class;  ///< Model: words of its name, as `A100` or `RTX 4090`.
  std::optional<Bytes> gpu_memory;       ///< Each GPU has at least this much, bytes.
  std::optional<std::string> compute_capability;  ///< Each GPU has at least this, as `8.0`.
  std::optional<std::string>
      instance_type;  ///< Amazon EC2 instance type that the step is meant for, as `g5.xlarge`.
  StringList placement_constraints;  ///< Expressions of ECS's cluster query language that the host
                                     ///< has to satisfy.
  std::optional<Preflight>
      preflight;  ///< Whether a GPU step runs nvidia-smi before its command. Default: on.
};

/// Amounts as Kubernetes writes them, by resource: `{{"cpu", "500m"}, {"memory", "8Gi"},
/// {"ephemeral-storage", "20Gi"}, {"example.com/fpga", "1"}}`.
struct KubernetesResources {
  StringMap requests;  ///< What is set aside for the step. Default: the limits.
  StringMap limits;    ///< What it may use at most.
};

/// What a step's Job on a Kubernetes cluster is like beyond what `docker` and `resources` say;
/// other places do not look at it. Names are those of ZenML's KubernetesPodSettings, else
/// Kubernetes' own. Values of type Json are Kubernetes' own objects, or the short form that is
/// written beside them.
struct KubernetesSettings {
  StringMap node_selectors;              ///< Labels that the node has to have.
  std::map<std::string, Json> affinity;  ///< Kubernetes' Affinity.
  Json tolerations;  ///< A list: taints that the node may have, `"KEY[=VALUE][:EFFECT]"`. Those of
                     ///< GPUs are tolerated anyway.
  KubernetesResources resources;            ///< Over what settings.resources come to.
  std::optional<std::string> gpu_resource;  ///< What the GPUs of settings.resources are called
                                            ///< there. Default: nvidia.com/gpu.
  Json env;  ///< A list: `"NAME=secret/OBJECT/KEY"`, `"NAME=configmap/OBJECT/KEY"`. Plain values:
             ///< the step's environment.
  Json env_from;       ///< A list: `"secret/OBJECT"`, `"configmap/OBJECT"`.
  Json volumes;        ///< A list: `"pvc/CLAIM:TARGET[:ro|rw]"`, `"secret/OBJECT:TARGET"`,
                       ///< `"configmap/OBJECT:TARGET"`.
  Json volume_mounts;  ///< A list: where volumes that are given as objects are seen.
  StringList image_pull_secrets;  ///< Secrets with the credentials of the images' registries.
  std::optional<std::string> service_account_name;  ///< Whose token the pod has. Default: none.
  StringMap labels, annotations;                    ///< Of Job and pod.
  std::optional<std::string> priority_class_name;
  std::optional<std::string> runtime_class_name;
  std::optional<std::string> scheduler_name;  ///< Default: the cluster's own.
  std::optional<std::string> queue_name;      ///< Kueue's local queue that the Job waits in.
  std::map<std::string, Json> container_security_context, pod_security_context;
  std::optional<bool> host_ipc;
  std::optional<bool> autoscaling;  ///< Nodes come when they are needed: that there is none yet is
                                    ///< no error. Default: false.
  std::optional<Duration>
      pod_startup_timeout;  ///< A pod that has not started by then fails. Default: 10 min.
  std::optional<unsigned>
      active_deadline_seconds;  ///< When the cluster ends the Job. Default: 5 min after the step's
                                ///< timeout, which is the driver's.
  std::optional<unsigned>
      ttl_seconds_after_finished;  ///< When the cluster removes an ended Job that nobody else has
                                   ///< removed. Default: a day.
  std::map<std::string, Json> additional_pod_spec_args;  ///< Merged into the pod's spec.
  std::map<std::string, Json> job_patch;  ///< Merged into the Job at last: a JSON merge patch in
                                          ///< which items of lists are known by their `name`.
};

/// A failed attempt is repeated up to `max_retries` times, after delay, delay*backoff,
/// delay*backoff², ...
struct RetrySettings {
  std::optional<unsigned> max_retries;                 ///< Default: 0.
  std::optional<Duration> delay;                       ///< Default: 0 s.
  std::optional<double> backoff;                       ///< Default: 1; >= 1.
  std::optional<unsigned> max_infrastructure_retries;  ///< Default: 3 on a cluster, else 0.
};

/// The `settings:` of a pipeline or step.
struct Settings {
  DockerSettings docker;
  ResourceSettings resources;
  KubernetesSettings kubernetes = {};
};

inline const std::vector<std::string>& StringList::items() const {
  static const std::vector<std::string> none;
  return has_value() ? **this : none;
}

}  // namespace pipeline

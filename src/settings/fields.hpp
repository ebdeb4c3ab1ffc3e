/// @file
/// A table for each settings struct: each key with its member, its permitted values and its
/// description. Decoding, merging, JSON and the JSON Schema are visitors of the table:
/// they know a new setting by its line here and its member in <pipeline/settings.hpp>.
#pragma once

#include <array>
#include <utility>

#include <pipeline/settings.hpp>

#include "settings/formats.hpp"
#include "settings/kubernetes_shapes.hpp"

namespace pipeline::settings {

/// The names of an enumeration's values. The first name of a value is written; all are read.
template <class Enum>
struct Choices;
template <>
struct Choices<PackageInstaller> {
  static constexpr const char* expected = "`uv` or `pip`";
  static constexpr std::array words{std::pair{"uv", PackageInstaller::uv},
                                    std::pair{"pip", PackageInstaller::pip}};
};
template <>
struct Choices<Accelerator> {
  static constexpr const char* expected = "`cpu`, `gpu` or `auto`";
  static constexpr std::array words{
      std::pair{"cpu", Accelerator::cpu}, std::pair{"gpu", Accelerator::gpu},
      std::pair{"auto", Accelerator::automatic}, std::pair{"cuda", Accelerator::gpu}};
};
template <>
struct Choices<GpuIds> {
  static constexpr const char* expected = "`uuid` or `index`";
  static constexpr std::array words{std::pair{"uuid", GpuIds::uuid},
                                    std::pair{"index", GpuIds::index}};
};
template <>
struct Choices<Preflight> {
  static constexpr const char* expected = "`on` or `off`";
  static constexpr std::array words{
      std::pair{"on", Preflight::on}, std::pair{"off", Preflight::off},
      std::pair{"true", Preflight::on}, std::pair{"false", Preflight::off}};
};

template <class Owner, class Member>
struct Field {
  const char* key;
  Member Owner::*member;
  const char* description;
  const Format* format = nullptr;  ///< Format of a text, of a list's items or of a map's values.
  const Format* key_format = nullptr;  ///< Format of a map's keys.
  const NumberFormat* number_format = nullptr;
  /// Shape of a value that is a Kubernetes object, or a list of them.
  const Shape* shape = nullptr;
};

template <class Owner, class Member, class... Formats>
Field(const char*, Member Owner::*, const char*, Formats...) -> Field<Owner, Member>;

template <class Visitor>
void fields(Visitor&& visit, const BuildOptions*) {
  using S = BuildOptions;
  visit(Field{"pull", &S::pull,
              "Look for a newer parent image before each build, also that of `pipe build`; a run "
              "whose image exists builds nothing. Default: only when the engine lacks the image."});
  visit(Field{"rm", &S::rm, "Classic builder: remove intermediate containers. Default: true."});
  visit(Field{"no_cache", &S::no_cache, "Ignore the builder's layer cache."});
  visit(Field{"shm_size", &S::shm_size,
              "Size of /dev/shm in the build's containers, such as `64MiB`."});
  visit(Field{"labels", &S::labels, "Labels of the image.", &formats::line, &formats::label});
  visit(Field{"build_args", &S::build_args,
              "ARG values. Visible in the image's history: no secrets.", &formats::line,
              &formats::build_argument});
  visit(Field{"cache_from", &S::cache_from, "Images whose layers may be reused.", &formats::image});
  visit(Field{"target", &S::target, "Stage of `dockerfile` to stop at.", &formats::image_tag});
  visit(
      Field{"network", &S::network, "Network mode of the build's containers.", &formats::network});
  visit(Field{"extra_hosts", &S::extra_hosts, "`NAME:ADDRESS` entries for the build's /etc/hosts.",
              &formats::host_entry});
}

template <class Visitor>
void fields(Visitor&& visit, const BuildConfig*) {
  using S = BuildConfig;
  visit(Field{"build_options", &S::build_options, "Options of the engine's build call."});
  visit(Field{"dockerignore", &S::dockerignore,
              "File with ignore rules. Default: the build context's .dockerignore.",
              &formats::path});
}

template <class Visitor>
void fields(Visitor&& visit, const DockerSettings*) {
  using S = DockerSettings;
  visit(
      Field{"parent_image", &S::parent_image,
            "Image that the generated Dockerfile starts FROM, of a registry or of an archive: "
            "`oci-archive:FILE[:TAG]`, `oci:FOLDER[:TAG]`, `docker-archive:FILE[:NAME]`. Excludes "
            "`dockerfile`; where a step gives one of the two, it replaces the pipeline's other.",
            &formats::parent_image});
  visit(Field{"dockerfile", &S::dockerfile,
              "A Dockerfile of your own, built first; its result is the parent image. Excludes "
              "`parent_image`.",
              &formats::path});
  visit(Field{"build_context_root", &S::build_context_root,
              "Folder sent as the context of `dockerfile`. Default: the Dockerfile's folder.",
              &formats::path});
  visit(Field{"parent_image_build_config", &S::parent_image_build_config,
              "Build options of `dockerfile`."});
  visit(Field{"build_config", &S::build_config, "Build options of the generated Dockerfile."});
  visit(Field{"skip_build", &S::skip_build, "Run `parent_image` as it is; nothing is installed."});
  visit(Field{"prevent_build_reuse", &S::prevent_build_reuse,
              "Build once in every run, even if an equal image exists."});
  visit(Field{"target_repository", &S::target_repository,
              "Repository of built images. With a registry, as in `ghcr.io/owner/name`, a cluster "
              "gets them from there, by digest: images are pushed with the credentials of `docker "
              "login`. Default: `pipe`, which stays on this machine's engine.",
              &formats::repository});
  visit(Field{"image_tag", &S::image_tag,
              "Tag of the built image, besides the tag that is its digest.", &formats::image_tag});
  visit(Field{"python_package_installer", &S::python_package_installer,
              "Installer of Python packages. Default: uv."});
  visit(Field{"python_package_installer_args", &S::python_package_installer_args,
              "Long options of the installer, without dashes: `{index-url: ..., no-deps: true}`.",
              nullptr, &formats::installer_option});
  visit(Field{"replicate_local_python_environment", &S::replicate_local_python_environment,
              "Install what `pip freeze` lists in your own environment."});
  visit(Field{"requirements", &S::requirements,
              "Python requirements: a list, or the name of a requirements file. A step's list "
              "replaces the pipeline's.",
              &formats::requirement});
  visit(Field{"pyproject_path", &S::pyproject_path,
              "pyproject.toml whose dependencies are installed.", &formats::path});
  visit(Field{"pyproject_export_command", &S::pyproject_export_command,
              "Command that prints requirements for `pyproject_path`, instead of reading it.",
              &formats::word});
  visit(Field{
      "local_project_install_command", &S::local_project_install_command,
      "Shell command run in the image, in a copy of the step's code, such as `pip install .`.",
      &formats::word});
  visit(Field{"apt_packages", &S::apt_packages,
              "Debian packages. A step's list replaces the pipeline's.", &formats::apt_package});
  visit(Field{"apt_snapshot", &S::apt_snapshot,
              "Date, as in `2026-11-01` or `2026-11-01T12:00:00Z`: `apt_packages` are installed as "
              "the archives of Debian and Ubuntu had them then.",
              &formats::snapshot});
  visit(Field{"environment", &S::environment,
              "Variables of the image, set before anything is installed.", &formats::line,
              &formats::variable});
  visit(Field{"runtime_environment", &S::runtime_environment,
              "Variables of the step's container or process, but not of the image.", &formats::text,
              &formats::variable});
  visit(Field{
      "user", &S::user,
      "User that the step runs as: NAME, UID or UID:GID; created if the parent image lacks it.",
      &formats::user});
  visit(Field{"volumes", &S::volumes,
              "`SOURCE:TARGET[:ro|rw]`: a path (relative ones from the pipeline's folder) or a "
              "volume's name, and where the step sees it.",
              &formats::volume});
  visit(Field{"network", &S::network,
              "Network mode of the container: bridge, host, none, or a network's name.",
              &formats::network});
  visit(Field{"platform", &S::platform, "`OS/ARCH[/VARIANT]` of image and container.",
              &formats::platform});
  visit(Field{"labels", &S::labels, "Labels of the container.", &formats::line, &formats::label});
  visit(Field{"run_args", &S::run_args,
              "Further options of the container, named as in docker's Python SDK."});
}

template <class Visitor>
void fields(Visitor&& visit, const ResourceSettings*) {
  using S = ResourceSettings;
  visit(Field{"cpu_count", &S::cpu_count, "CPUs that the step may use; fractions allowed.", nullptr,
              nullptr, &formats::positive});
  visit(Field{"memory", &S::memory, "Hard limit of the step's memory, such as `512MB` or `8GiB`."});
  visit(Field{"shm_size", &S::shm_size, "Size of /dev/shm, such as `1GiB`."});
  visit(
      Field{"gpu_count", &S::gpu_count,
            "GPUs held by the step alone. `gpu_count`, `devices` and `gpus` exclude each other."});
  visit(Field{"accelerator", &S::accelerator,
              "`gpu`: all GPUs, unless another key says how many. `cpu`: none. `auto`: as `gpu` "
              "where the machine has GPUs, else none."});
  visit(Field{"devices", &S::devices,
              "GPUs in PyTorch Lightning's notation: `2` or `\"2\"` the first two, `-1` all, `[1, "
              "3]` or `\"1, 3\"` those, or a list of UUIDs and MIG devices."});
  visit(Field{"auto_select_gpus", &S::auto_select_gpus, "Take GPUs that no process occupies."});
  visit(Field{"gpus", &S::gpus,
              "GPUs in the notation of docker's `--gpus` and GitLab Runner: `all`, `2`, "
              "`device=0,1`, `\"device=0,1\",capabilities=utility`, a UUID, a MIG device.",
              &formats::word});
  visit(Field{"gpu_class", &S::gpu_class,
              "Model of the GPUs: words of its name, such as `A100`, `A100 80GB` or `RTX 4090`.",
              &formats::word});
  visit(Field{"gpu_memory", &S::gpu_memory, "Memory that each GPU has at least, such as `24GiB`."});
  visit(Field{"compute_capability", &S::compute_capability,
              "Compute capability that each GPU has at least, such as `8.0`.",
              &formats::compute_capability});
  visit(Field{"instance_type", &S::instance_type,
              "Amazon EC2 instance type that the step is meant for, such as `g5.xlarge`; GPUs, "
              "memory and CPUs are checked against it.",
              &formats::instance_type});
  visit(Field{"placement_constraints", &S::placement_constraints,
              "Conditions that the host has to satisfy, in Amazon ECS's language: "
              "`attribute:ecs.instance-type == g5.xlarge`, or a map "
              "`{type: memberOf, expression: ...}`.",
              &formats::word});
  visit(Field{"gpu_ids", &S::gpu_ids,
              "How CUDA_VISIBLE_DEVICES names the step's GPUs: `index`, for programs that read "
              "numbers in it, or `uuid`. Default: `uuid` for processes; containers, which see no "
              "other GPUs, have no such variable."});
  visit(Field{"preflight", &S::preflight,
              "Run nvidia-smi before the command of a step with GPUs, and fail the step if "
              "nvidia-smi fails. Default: on."});
}

template <class Visitor>
void fields(Visitor&& visit, const KubernetesResources*) {
  using S = KubernetesResources;
  visit(Field{"requests", &S::requests,
              "Resources reserved for the step on its node: `{cpu: 500m, memory: 4Gi}`. Default: "
              "the limits.",
              &formats::quantity, &formats::kubernetes_key});
  visit(Field{"limits", &S::limits,
              "Maximum that the step may use: `{memory: 8Gi, ephemeral-storage: 20Gi, "
              "nvidia.com/mig-1g.5gb: 1}`. Limits take precedence over `settings.resources`.",
              &formats::quantity, &formats::kubernetes_key});
}

template <class Visitor>
void fields(Visitor&& visit, const KubernetesTopology*) {
  using S = KubernetesTopology;
  visit(Field{"required", &S::required,
              "The step waits until its pods fit on nodes that have the same value of this label.",
              &formats::kubernetes_key});
  visit(Field{
      "preferred", &S::preferred,
      "The step's pods get nodes that have the same value of this label, or other nodes if there "
      "are none.",
      &formats::kubernetes_key});
}

template <class Visitor>
void fields(Visitor&& visit, const KubernetesSettings*) {
  using S = KubernetesSettings;
  const auto object = [&](const char* key, auto member, const char* description,
                          const Shape& shape) {
    visit(Field{key, member, description, nullptr, nullptr, nullptr, &shape});
  };
  visit(Field{"node_selectors", &S::node_selectors, "Labels that the node has to have.",
              &formats::kubernetes_label, &formats::kubernetes_key});
  object(
      "affinity", &S::affinity,
      "Kubernetes' Affinity: `{nodeAffinity: {...}, podAffinity: {...}, podAntiAffinity: {...}}`.",
      shapes::affinity);
  object("tolerations", &S::tolerations,
         "Taints that the node may have: `KEY[=VALUE][:EFFECT]`, or Kubernetes' `{key, operator, "
         "value, effect}`. Taints of GPUs are always tolerated.",
         shapes::tolerations);
  visit(Field{
      "resources", &S::resources,
      "Requests and limits as Kubernetes writes them; take precedence over `settings.resources`."});
  visit(Field{"gpu_resource", &S::gpu_resource,
              "The cluster's name of the GPUs in `settings.resources`, such as `amd.com/gpu` or "
              "`nvidia.com/mig-1g.5gb`. Default: `nvidia.com/gpu`.",
              &formats::kubernetes_key});
  object("env", &S::env,
         "Variables whose values the cluster knows: `NAME=secret/OBJECT/KEY`, "
         "`NAME=configmap/OBJECT/KEY`, or Kubernetes' `{name, valueFrom}`. Plain values belong in "
         "the step's `environment`.",
         shapes::env);
  object("env_from", &S::env_from,
         "All keys of an object as variables: `secret/OBJECT`, `configmap/OBJECT`, or Kubernetes' "
         "`{secretRef: {name}}`.",
         shapes::env_from);
  object("volumes", &S::volumes,
         "Files of the cluster that the step sees: `pvc/CLAIM:TARGET[:ro|rw]`, "
         "`secret/OBJECT:TARGET`, `configmap/OBJECT:TARGET`, or Kubernetes' Volume `{name, ...}`, "
         "with a `volume_mounts`.",
         shapes::volumes);
  object("volume_mounts", &S::volume_mounts,
         "Where the step sees volumes that are given as Kubernetes' objects: `{name, mountPath}`.",
         shapes::volume_mounts);
  visit(Field{"image_pull_secrets", &S::image_pull_secrets,
              "Secrets with the credentials of the images' registries.",
              &formats::kubernetes_name});
  visit(Field{"service_account_name", &S::service_account_name,
              "Service account whose token the pod has. Default: none.",
              &formats::kubernetes_name});
  visit(Field{"labels", &S::labels, "Labels of Job and pod.", &formats::kubernetes_label,
              &formats::own_label});
  visit(Field{"annotations", &S::annotations, "Annotations of Job and pod.", &formats::text,
              &formats::kubernetes_key});
  visit(Field{"priority_class_name", &S::priority_class_name, "Priority class of the pod.",
              &formats::kubernetes_name});
  visit(Field{"runtime_class_name", &S::runtime_class_name, "Runtime class of the pod.",
              &formats::kubernetes_name});
  visit(Field{"scheduler_name", &S::scheduler_name,
              "Scheduler of the pod. Default: the cluster's own.", &formats::kubernetes_name});
  visit(Field{"queue_name", &S::queue_name, "Kueue's local queue that the Job waits in.",
              &formats::kubernetes_name});
  visit(Field{"topology", &S::topology,
              "Nodes near one another for the pods of a step with `queue_name`, by a label of "
              "Kueue's topology: `{required: LABEL}` or `{preferred: LABEL}`."});
  object("container_security_context", &S::container_security_context,
         "Kubernetes' SecurityContext of the step's container: `{privileged: true}`. Its user "
         "takes precedence over `docker.user`.",
         shapes::container_security_context);
  object("pod_security_context", &S::pod_security_context,
         "Kubernetes' PodSecurityContext: `{fsGroup: 2000}`.", shapes::pod_security_context);
  visit(Field{"host_ipc", &S::host_ipc, "The pod shares the node's IPC namespace."});
  visit(Field{"autoscaling", &S::autoscaling,
              "The cluster adds nodes as they are needed, so a missing node is not an error. "
              "Default: false."});
  visit(Field{"pod_startup_timeout", &S::pod_startup_timeout,
              "Time in which the step's pod has to start; else the step fails. Default: 10m."});
  visit(Field{
      "active_deadline_seconds", &S::active_deadline_seconds,
      "Time after which the cluster ends the Job, for a step whose `pipe` is gone. Default: 5 "
      "minutes more than `timeout`."});
  visit(Field{
      "ttl_seconds_after_finished", &S::ttl_seconds_after_finished,
      "Time after which the cluster removes an ended Job that `pipe` has not removed. Default: "
      "86400, a day."});
  object("additional_pod_spec_args", &S::additional_pod_spec_args,
         "Further members of the pod's spec, merged into it: `{dnsPolicy: Default}`.",
         shapes::pod_spec);
  object("job_patch", &S::job_patch,
         "A JSON merge patch of the Job, applied last, for members without a setting: `{spec: "
         "{template: {spec: {hostname: gpu}}}}`. Items of lists that have a `name` are merged by "
         "it.",
         shapes::job);
}

template <class Visitor>
void fields(Visitor&& visit, const SlurmSettings*) {
  using S = SlurmSettings;
  visit(Field{"partition", &S::partition,
              "Partition of the job, or several, separated by commas: the first that can start the "
              "job. Default: the profile's, else the cluster's.",
              &formats::word});
  visit(Field{"account", &S::account, "Account that the job is charged to.", &formats::word});
  visit(Field{"qos", &S::qos, "Quality of service of the job.", &formats::word});
  visit(Field{"constraint", &S::constraint,
              "Features that the node has to have, such as `a100` or `a100&nvlink`.",
              &formats::word});
  visit(Field{"reservation", &S::reservation, "Reservation that the job uses.", &formats::word});
  visit(Field{"exclude", &S::exclude,
              "Nodes that the job must not have, such as `node[1-3],node7`.", &formats::word});
  visit(Field{"nice", &S::nice,
              "Amount by which the job's priority is lowered; few users may give a number below 0.",
              &formats::whole_number});
  visit(Field{"time", &S::time,
              "Slurm's time limit of the job, in whole minutes. Default: two minutes more than "
              "`timeout`; without a `timeout` the partition's."});
  visit(Field{"extra_args", &S::extra_args,
              "Further options of sbatch, such as `--exclusive` or `--licenses=matlab:1`, of those "
              "that `pipe` leaves to you (docs/slurm.md).",
              &formats::sbatch_option});
}

template <class Visitor>
void fields(Visitor&& visit, const OomRetry*) {
  using S = OomRetry;
  visit(Field{"memory", &S::memory,
              "How many times as much memory the next attempt gets, such as `x1.5`. Default: x2."});
  visit(Field{"max", &S::max, "Maximum memory of an attempt, such as `32GiB`."});
}

template <class Visitor>
void fields(Visitor&& visit, const RetrySettings*) {
  using S = RetrySettings;
  visit(Field{"max_retries", &S::max_retries,
              "Maximum number of retries after failed attempts. Default: 0."});
  visit(Field{"on", &S::on,
              "Failures that are retried (default: all): `exit 75`, `signal 9`, a kind "
              "(`out_of_memory`, `infrastructure`, `timeout`, `stalled`, `missing_output`, ...), "
              "or a text in the output, such as `CUDA error`. Without `max_retries`: once.",
              &formats::failure});
  visit(Field{"never", &S::never,
              "Failures that are not retried, in the form of `on`; they win over `on` and over the "
              "retries for infrastructure and memory.",
              &formats::failure});
  visit(Field{"avoid_failed", &S::avoid_failed,
              "Prefer other nodes of a cluster, and other GPUs of this machine, than those of the "
              "step's failed attempts. Default: false."});
  visit(Field{"delay", &S::delay, "Time before the first retry, such as `10s`. Default: none."});
  visit(Field{"backoff", &S::backoff,
              "Factor by which the delay grows with each retry, at least 1. Default: 1.", nullptr,
              nullptr, &formats::at_least_one});
  visit(Field{"max_infrastructure_retries", &S::max_infrastructure_retries,
              "Additional retries of an attempt after an infrastructure failure: its node was "
              "lost, drained or out of disk, a pod of higher priority took its place, its engine "
              "was restarted or lost. Default: 3 on a cluster and on an engine, else 0."});
  visit(
      Field{"on_oom", &S::on_oom,
            "Retry an attempt that was killed because it had reached `resources.memory`, with more "
            "memory, until `max` is reached. These retries have no delay and are not among "
            "`max_retries`."});
  visit(Field{"stalled", &S::stalled,
              "End an attempt that has stalled, see `stalled_after`, and retry it as one that "
              "failed: once, or as often as `max_retries` says. Default: false."});
}

template <class Visitor>
void fields(Visitor&& visit, const Settings*) {
  using S = Settings;
  visit(Field{"docker", &S::docker,
              "How the step's image is made and its container started (ZenML's DockerSettings)."});
  visit(Field{"resources", &S::resources, "The step's requirements of its machine."});
  visit(Field{"kubernetes", &S::kubernetes,
              "The step's Job on a Kubernetes cluster (ZenML's KubernetesPodSettings)."});
  visit(Field{"slurm", &S::slurm, "The step's job of Slurm, with the words of sbatch."});
}

}  // namespace pipeline::settings

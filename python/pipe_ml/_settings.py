"""Types of the options of steps and pipelines. Made by scripts/generate-docs from `pipe schema`: edit the descriptions in src."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Sequence, TypedDict, Union


class Cache(TypedDict, total=False):
    max_age: Union[str, float]
    """Age of the oldest result to be used."""
    until: str
    """A part of the key, which may name parameters."""


class OnOom(TypedDict, total=False):
    max: Union[str, int]
    """Maximum memory of an attempt, such as `32GiB`."""
    memory: Union[str, int]
    """How many times as much memory the next attempt gets, such as `x1.5`. Default: x2."""


class Retry(TypedDict, total=False):
    avoid_failed: Union[bool, str]
    """Prefer other nodes of a cluster, and other GPUs of this machine, than those of the step's failed attempts. Default:
    false."""
    backoff: Union[float, str]
    """Factor by which the delay grows with each retry, at least 1. Default: 1."""
    delay: Union[str, float]
    """Time before the first retry, such as `10s`. Default: none."""
    max_infrastructure_retries: Union[int, str]
    """Additional retries of an attempt after an infrastructure failure: its node was lost, drained or out of disk, a pod of
    higher priority took its place, its engine was restarted or lost. Default: 3 on a cluster and on an engine, else 0."""
    max_retries: Union[int, str]
    """Maximum number of retries after failed attempts. Default: 0."""
    never: Sequence[str]
    """Failures that are not retried, in the form of `on`; they win over `on` and over the retries for infrastructure and
    memory."""
    on: Sequence[str]
    """Failures that are retried (default: all): `exit 75`, `signal 9`, a kind (`out_of_memory`, `infrastructure`, `timeout`,
    `stalled`, `missing_output`, ...), or a text in the output, such as `CUDA error`. Without `max_retries`: once."""
    on_oom: OnOom
    """Retry an attempt that was killed because it had reached `resources.memory`, with more memory, until `max` is reached. These
    retries have no delay and are not among `max_retries`."""
    stalled: Union[bool, str]
    """End an attempt that has stalled, see `stalled_after`, and retry it as one that failed: once, or as often as `max_retries`
    says. Default: false."""


class BuildOptions(TypedDict, total=False):
    build_args: Mapping[str, Union[str, float, bool]]
    """ARG values. Visible in the image's history: no secrets."""
    cache_from: Sequence[str]
    """Images whose layers may be reused."""
    extra_hosts: Sequence[str]
    """`NAME:ADDRESS` entries for the build's /etc/hosts."""
    labels: Mapping[str, Union[str, float, bool]]
    """Labels of the image."""
    network: str
    """Network mode of the build's containers."""
    no_cache: Union[bool, str]
    """Ignore the builder's layer cache."""
    pull: Union[bool, str]
    """Look for a newer parent image before each build, also that of `pipe build`; a run whose image exists builds nothing.
    Default: only when the engine lacks the image."""
    rm: Union[bool, str]
    """Classic builder: remove intermediate containers. Default: true."""
    shm_size: Union[str, int]
    """Size of /dev/shm in the build's containers, such as `64MiB`."""
    target: str
    """Stage of `dockerfile` to stop at."""


class BuildConfig(TypedDict, total=False):
    build_options: BuildOptions
    """Options of the engine's build call."""
    dockerignore: str
    """File with ignore rules. Default: the build context's .dockerignore."""


class RunArgs(TypedDict, total=False):
    cap_add: Sequence[Union[str, float, bool]]
    """Kernel capabilities to add, such as SYS_PTRACE. MKNOD and SETFCAP, which engines give, are withheld without it."""
    cap_drop: Sequence[Union[str, float, bool]]
    """Kernel capabilities to drop."""
    cpu_shares: int
    """Weight of the container's CPU time where others want it too, 2 to 262144; 1024 is usual."""
    device_cgroup_rules: Sequence[Union[str, float, bool]]
    """Rules of the device cgroup, such as `c 10:200 rwm`."""
    devices: Sequence[Union[str, float, bool]]
    """Devices of the host: `/dev/fuse` or `/dev/host:/dev/container:rwm`."""
    dns: Sequence[Union[str, float, bool]]
    """Name servers."""
    dns_search: Sequence[Union[str, float, bool]]
    """Domains in which names are looked up."""
    domainname: str
    """Domain name of the container."""
    extra_hosts: Union[Mapping[str, str], Sequence[str]]
    """Entries for /etc/hosts: a map of names to addresses, or a list of `NAME:ADDRESS`."""
    group_add: Sequence[Union[str, float, bool]]
    """Further groups of the step's user."""
    hostname: str
    """Host name of the container."""
    init: bool
    """Run an init process that forwards signals and reaps processes."""
    ipc_mode: str
    """IPC namespace: private, shareable, host, none or container:NAME."""
    mem_reservation: Union[str, int]
    """Memory that the kernel leaves the container when memory is short; below `resources.memory`."""
    mem_swappiness: int
    """Readiness of the kernel to swap, 0 to 100."""
    memswap_limit: Union[str, int]
    """Memory and swap together; -1 for no limit of swap."""
    oom_score_adj: int
    """Preference of the kernel's OOM killer, -1000 to 1000."""
    pid_mode: str
    """PID namespace: host or container:NAME."""
    pids_limit: int
    """Maximum number of processes in the container; -1 for no limit."""
    privileged: bool
    """Give the container all rights of the host's root."""
    read_only: bool
    """Mount the container's root file system read-only."""
    security_opt: Sequence[Union[str, float, bool]]
    """Security options, such as `seccomp=unconfined`. Without `no-new-privileges=false` no program, such as sudo, gains rights by
    its setuid bit."""
    shm_size: Union[str, int]
    """Size of /dev/shm; `resources.shm_size` says the same for every orchestrator."""
    storage_opt: Mapping[str, Union[str, float, bool]]
    """Options of the storage driver, such as `{size: 20G}`."""
    sysctls: Mapping[str, Union[str, float, bool]]
    """Kernel parameters of the container's namespaces."""
    tmpfs: Mapping[str, Union[str, float, bool]]
    """File systems in memory: a path to its options, such as `{/scratch: size=1g}`."""
    ulimits: Mapping[str, Union[int, Mapping[str, Any]]]
    """Resource limits: a name to a number, or to {soft, hard}."""
    userns_mode: str
    """User namespace: host."""
    uts_mode: str
    """UTS namespace: host."""


class DockerSettings(TypedDict, total=False):
    apt_packages: Sequence[str]
    """Debian packages. A step's list replaces the pipeline's."""
    apt_snapshot: str
    """Date, as in `2026-11-01` or `2026-11-01T12:00:00Z`: `apt_packages` are installed as the archives of Debian and Ubuntu had
    them then."""
    build_config: BuildConfig
    """Build options of the generated Dockerfile."""
    build_context_root: str
    """Folder sent as the context of `dockerfile`. Default: the Dockerfile's folder."""
    dockerfile: str
    """A Dockerfile of your own, built first; its result is the parent image. Excludes `parent_image`."""
    environment: Mapping[str, Union[str, float, bool]]
    """Variables of the image, set before anything is installed."""
    image_tag: str
    """Tag of the built image, besides the tag that is its digest."""
    labels: Mapping[str, Union[str, float, bool]]
    """Labels of the container."""
    local_project_install_command: str
    """Shell command run in the image, in a copy of the step's code, such as `pip install .`."""
    network: str
    """Network mode of the container: bridge, host, none, or a network's name."""
    parent_image: str
    """Image that the generated Dockerfile starts FROM, of a registry or of an archive: `oci-archive:FILE[:TAG]`,
    `oci:FOLDER[:TAG]`, `docker-archive:FILE[:NAME]`. Excludes `dockerfile`; where a step gives one of the two, it replaces the
    pipeline's other."""
    parent_image_build_config: BuildConfig
    """Build options of `dockerfile`."""
    platform: str
    """`OS/ARCH[/VARIANT]` of image and container."""
    prevent_build_reuse: Union[bool, str]
    """Build once in every run, even if an equal image exists."""
    pyproject_export_command: Sequence[str]
    """Command that prints requirements for `pyproject_path`, instead of reading it."""
    pyproject_path: str
    """pyproject.toml whose dependencies are installed."""
    python_package_installer: str
    """Installer of Python packages. Default: uv."""
    python_package_installer_args: Mapping[str, Union[Union[str, float, bool, None], Sequence[Union[str, float, bool]]]]
    """Long options of the installer, without dashes: `{index-url: ..., no-deps: true}`."""
    replicate_local_python_environment: Union[bool, str]
    """Install what `pip freeze` lists in your own environment."""
    requirements: Union[Sequence[str], str]
    """Python requirements: a list, or the name of a requirements file. A step's list replaces the pipeline's."""
    run_args: RunArgs
    """Further options of the container, named as in docker's Python SDK."""
    runtime_environment: Mapping[str, Union[str, float, bool]]
    """Variables of the step's container or process, but not of the image."""
    skip_build: Union[bool, str]
    """Run `parent_image` as it is; nothing is installed."""
    target_repository: str
    """Repository of built images. With a registry, as in `ghcr.io/owner/name`, a cluster gets them from there, by digest: images
    are pushed with the credentials of `docker login`. Default: `pipe`, which stays on this machine's engine."""
    user: Union[str, float]
    """User that the step runs as: NAME, UID or UID:GID; created if the parent image lacks it."""
    volumes: Sequence[str]
    """`SOURCE:TARGET[:ro|rw]`: a path (relative ones from the pipeline's folder) or a volume's name, and where the step sees
    it."""


class KubernetesResources(TypedDict, total=False):
    limits: Mapping[str, Union[str, float, bool]]
    """Maximum that the step may use: `{memory: 8Gi, ephemeral-storage: 20Gi, nvidia.com/mig-1g.5gb: 1}`. Limits take precedence
    over `settings.resources`."""
    requests: Mapping[str, Union[str, float, bool]]
    """Resources reserved for the step on its node: `{cpu: 500m, memory: 4Gi}`. Default: the limits."""


class KubernetesTopology(TypedDict, total=False):
    preferred: str
    """The step's pods get nodes that have the same value of this label, or other nodes if there are none."""
    required: str
    """The step waits until its pods fit on nodes that have the same value of this label."""


class KubernetesSettings(TypedDict, total=False):
    active_deadline_seconds: Union[int, str]
    """Time after which the cluster ends the Job, for a step whose `pipe` is gone. Default: 5 minutes more than `timeout`."""
    additional_pod_spec_args: Mapping[str, Any]
    """Further members of the pod's spec, merged into it: `{dnsPolicy: Default}`."""
    affinity: Mapping[str, Any]
    """Kubernetes' Affinity: `{nodeAffinity: {...}, podAffinity: {...}, podAntiAffinity: {...}}`."""
    annotations: Mapping[str, Union[str, float, bool]]
    """Annotations of Job and pod."""
    autoscaling: Union[bool, str]
    """The cluster adds nodes as they are needed, so a missing node is not an error. Default: false."""
    container_security_context: Mapping[str, Any]
    """Kubernetes' SecurityContext of the step's container: `{privileged: true}`. Its user takes precedence over `docker.user`."""
    env: Sequence[Union[str, Mapping[str, Any]]]
    """Variables whose values the cluster knows: `NAME=secret/OBJECT/KEY`, `NAME=configmap/OBJECT/KEY`, or Kubernetes' `{name,
    valueFrom}`. Plain values belong in the step's `environment`."""
    env_from: Sequence[Union[str, Mapping[str, Any]]]
    """All keys of an object as variables: `secret/OBJECT`, `configmap/OBJECT`, or Kubernetes' `{secretRef: {name}}`."""
    gpu_resource: str
    """The cluster's name of the GPUs in `settings.resources`, such as `amd.com/gpu` or `nvidia.com/mig-1g.5gb`. Default:
    `nvidia.com/gpu`."""
    host_ipc: Union[bool, str]
    """The pod shares the node's IPC namespace."""
    image_pull_secrets: Sequence[str]
    """Secrets with the credentials of the images' registries."""
    job_patch: Mapping[str, Any]
    """A JSON merge patch of the Job, applied last, for members without a setting: `{spec: {template: {spec: {hostname: gpu}}}}`.
    Items of lists that have a `name` are merged by it."""
    labels: Mapping[str, Union[str, float, bool]]
    """Labels of Job and pod."""
    node_selectors: Mapping[str, Union[str, float, bool]]
    """Labels that the node has to have."""
    pod_security_context: Mapping[str, Any]
    """Kubernetes' PodSecurityContext: `{fsGroup: 2000}`."""
    pod_startup_timeout: Union[str, float]
    """Time in which the step's pod has to start; else the step fails. Default: 10m."""
    priority_class_name: str
    """Priority class of the pod."""
    queue_name: str
    """Kueue's local queue that the Job waits in."""
    resources: KubernetesResources
    """Requests and limits as Kubernetes writes them; take precedence over `settings.resources`."""
    runtime_class_name: str
    """Runtime class of the pod."""
    scheduler_name: str
    """Scheduler of the pod. Default: the cluster's own."""
    service_account_name: str
    """Service account whose token the pod has. Default: none."""
    tolerations: Sequence[Union[str, Mapping[str, Any]]]
    """Taints that the node may have: `KEY[=VALUE][:EFFECT]`, or Kubernetes' `{key, operator, value, effect}`. Taints of GPUs are
    always tolerated."""
    topology: KubernetesTopology
    """Nodes near one another for the pods of a step with `queue_name`, by a label of Kueue's topology: `{required: LABEL}` or
    `{preferred: LABEL}`."""
    ttl_seconds_after_finished: Union[int, str]
    """Time after which the cluster removes an ended Job that `pipe` has not removed. Default: 86400, a day."""
    volume_mounts: Sequence[Mapping[str, Any]]
    """Where the step sees volumes that are given as Kubernetes' objects: `{name, mountPath}`."""
    volumes: Sequence[Union[str, Mapping[str, Any]]]
    """Files of the cluster that the step sees: `pvc/CLAIM:TARGET[:ro|rw]`, `secret/OBJECT:TARGET`, `configmap/OBJECT:TARGET`, or
    Kubernetes' Volume `{name, ...}`, with a `volume_mounts`."""


class ResourceSettings(TypedDict, total=False):
    accelerator: str
    """`gpu`: all GPUs, unless another key says how many. `cpu`: none. `auto`: as `gpu` where the machine has GPUs, else none."""
    auto_select_gpus: Union[bool, str]
    """Take GPUs that no process occupies."""
    compute_capability: Union[str, float]
    """Compute capability that each GPU has at least, such as `8.0`."""
    cpu_count: Union[float, str]
    """CPUs that the step may use; fractions allowed."""
    devices: Union[int, str, Sequence[Union[int, str]]]
    """GPUs in PyTorch Lightning's notation: `2` or `'2'` the first two, `-1` all, `[1, 3]` or `'1, 3'` those, or a list of UUIDs
    and MIG devices."""
    gpu_class: str
    """Model of the GPUs: words of its name, such as `A100`, `A100 80GB` or `RTX 4090`."""
    gpu_count: Union[int, str]
    """GPUs held by the step alone. `gpu_count`, `devices` and `gpus` exclude each other."""
    gpu_ids: str
    """How CUDA_VISIBLE_DEVICES names the step's GPUs: `index`, for programs that read numbers in it, or `uuid`. Default: `uuid`
    for processes; containers, which see no other GPUs, have no such variable."""
    gpu_memory: Union[str, int]
    """Memory that each GPU has at least, such as `24GiB`."""
    gpus: Union[str, float]
    """GPUs in the notation of docker's `--gpus` and GitLab Runner: `all`, `2`, `device=0,1`, `'device=0,1',capabilities=utility`,
    a UUID, a MIG device."""
    instance_type: str
    """Amazon EC2 instance type that the step is meant for, such as `g5.xlarge`; GPUs, memory and CPUs are checked against it."""
    memory: Union[str, int]
    """Hard limit of the step's memory, such as `512MB` or `8GiB`."""
    placement_constraints: Sequence[Union[str, Mapping[str, Any]]]
    """Conditions that the host has to satisfy, in Amazon ECS's language: `attribute:ecs.instance-type == g5.xlarge`, or a map
    `{type: memberOf, expression: ...}`."""
    preflight: Union[str, bool]
    """Run nvidia-smi before the command of a step with GPUs, and fail the step if nvidia-smi fails. Default: on."""
    shm_size: Union[str, int]
    """Size of /dev/shm, such as `1GiB`."""


class SlurmSettings(TypedDict, total=False):
    account: str
    """Account that the job is charged to."""
    constraint: str
    """Features that the node has to have, such as `a100` or `a100&nvlink`."""
    exclude: str
    """Nodes that the job must not have, such as `node[1-3],node7`."""
    extra_args: Sequence[str]
    """Further options of sbatch, such as `--exclusive` or `--licenses=matlab:1`, of those that `pipe` leaves to you
    (docs/slurm.md)."""
    nice: Union[str, float]
    """Amount by which the job's priority is lowered; few users may give a number below 0."""
    partition: str
    """Partition of the job, or several, separated by commas: the first that can start the job. Default: the profile's, else the
    cluster's."""
    qos: str
    """Quality of service of the job."""
    reservation: str
    """Reservation that the job uses."""
    time: Union[str, float]
    """Slurm's time limit of the job, in whole minutes. Default: two minutes more than `timeout`; without a `timeout` the
    partition's."""


class Settings(TypedDict, total=False):
    docker: DockerSettings
    """How the step's image is made and its container started (ZenML's DockerSettings)."""
    kubernetes: KubernetesSettings
    """The step's Job on a Kubernetes cluster (ZenML's KubernetesPodSettings)."""
    resources: ResourceSettings
    """The step's requirements of its machine."""
    slurm: SlurmSettings
    """The step's job of Slurm, with the words of sbatch."""


class StepSettings(TypedDict, total=False):
    allow_failure: bool
    """Whether the run continues, and can succeed, if the step fails. Steps `after` it run; those that take its outputs are
    skipped. Default: false."""
    cache: Union[bool, Cache]
    """Whether an earlier success with the same key is used instead of a run. Default: true. `{max_age: 24h}`: unless it is older;
    results of other machines, whose age is not known, are not used. `{until: '${params.day}'}`: until that text changes."""
    checkpoint: bool
    """Whether the step has a folder, `${checkpoint}` and $PIPE_CHECKPOINT, that survives its attempts, retries and runs with the
    same key until it succeeds. Default: whether its command names it."""
    code: Union[str, Sequence[str]]
    """Files, folders and globs (`**` crosses folders) of the pipeline's folder that the step sees; `.` is all that .dockerignore
    and .gitignore leave. Default: the files that the command and PYTHONPATH name, and what those import or source."""
    description: str
    """The purpose of the step."""
    environment: Union[Mapping[str, Union[str, float, bool, None]], Sequence[str]]
    """Variables of the step: a map of names to values (none: the caller's value), or a list of names whose values come from the
    caller."""
    max_parallel: int
    """Maximum number of the step's instances that run at the same time; for a step with a matrix."""
    nodes: Union[int, str, Mapping[str, Any]]
    """Makes the step several processes, which start together, fail together and give one result: `2`, or `{count: 2, processes:
    gpus}`. Each finds the others by the variables of torchrun, JAX and TensorFlow, such as RANK and MASTER_ADDR.
    `settings.resources` are those of each node. Outputs are those of the first node, or with `from: all` those of all nodes."""
    orchestrator: str
    """Where this step runs, if elsewhere than the run (`--orchestrator`)."""
    publish: Mapping[str, str]
    """Names under which outputs are published once the step succeeds, by output: `{model: production}`. Other pipelines take them
    as `artifact:production`."""
    publish_to: str
    """Folder that receives copies of the outputs when the step has succeeded or is reused: `./results/${params.sample}`. An
    earlier file or folder of an output's name is replaced in one move."""
    retry: Retry
    """Retries of failed attempts."""
    run_on: str
    """How the steps before this one have to end for it to run: all have succeeded (the default), at least one has failed, or in
    any way. With `failure` and `always`, a step without `after` comes after all others, and is not reused unless it says `cache:
    true`."""
    secrets: Sequence[Union[str, Mapping[str, Any]]]
    """Variables from the caller's environment or a file that are masked in logs and not stored by pipe; users with access to the
    engine or the cluster can read them while the container or the Job exists."""
    services: Mapping[str, Mapping[str, Any]]
    """Containers that run beside the step while it runs, by the name under which it reaches them: `{db: {image: postgres:16,
    ready: {port: 5432}}}`. They see its inputs and code at its own paths, and its GPUs. Their identity is a part of the step's
    key."""
    settings: Settings
    """Image, container and resources. The pipeline's are each step's default; a step's own values win key by key, its lists
    replace, its maps are merged in."""
    stalled_after: Union[str, float]
    """Time without output after which a running step is reported as stalled, with what its processes wait in; `retry.stalled`
    ends it. A bare number is seconds."""
    timeout: Union[str, float]
    """Longest time of one attempt; a bare number is seconds."""
    uses: Mapping[str, int]
    """Units of named limits that the step holds while it runs, `{license: 1}`. A profile sets how many this machine has for all
    runs: `limits: {license: 2}`."""
    version: Union[str, float]
    """A text in the step's key: change it when data that the step reads in other ways than as inputs (volumes, claims, a
    database) has changed."""
    wait: str
    """A question to a person, `Deploy ${params.model}?`: the step begins once `pipe answer RUN STEP yes` was said, and fails
    after `no`. Such a step is not reused, unless it has `cache: true`."""


class PipelineSettings(TypedDict, total=False):
    cache: Union[bool, Cache]
    """Whether an earlier success with the same key is used instead of a run. Default: true. `{max_age: 24h}`: unless it is older;
    results of other machines, whose age is not known, are not used. `{until: '${params.day}'}`: until that text changes."""
    code: Union[str, Sequence[str]]
    """Files, folders and globs (`**` crosses folders) of the pipeline's folder that the step sees; `.` is all that .dockerignore
    and .gitignore leave. Default: the files that the command and PYTHONPATH name, and what those import or source."""
    environment: Union[Mapping[str, Union[str, float, bool, None]], Sequence[str]]
    """Variables of the step: a map of names to values (none: the caller's value), or a list of names whose values come from the
    caller."""
    execution_mode: str
    """The effect of a failed step on the other steps. Default: continue_on_failure."""
    headline: Sequence[str]
    """The metrics that say how good a run is, as `STEP.METRIC`, at most 8: reports, pages and `pipe metrics` begin with them.
    Default: those of the last steps with metrics."""
    notify: Union[Mapping[str, Any], Sequence[Mapping[str, Any]]]
    """Webhooks that are called when a run has ended. A webhook that fails is reported, and does not fail the run."""
    retry: Retry
    """Retries of failed attempts."""
    secrets: Sequence[Union[str, Mapping[str, Any]]]
    """Variables from the caller's environment or a file that are masked in logs and not stored by pipe; users with access to the
    engine or the cluster can read them while the container or the Job exists."""
    settings: Settings
    """Image, container and resources. The pipeline's are each step's default; a step's own values win key by key, its lists
    replace, its maps are merged in."""
    stalled_after: Union[str, float]
    """Time without output after which a running step is reported as stalled, with what its processes wait in; `retry.stalled`
    ends it. A bare number is seconds."""
    tags: Sequence[str]
    """Words to find its runs by."""
    timeout: Union[str, float]
    """Longest time of one attempt; a bare number is seconds."""


# The class of each option that is a map with fixed keys.
NESTED: Dict[str, Dict[str, str]] = {
    "BuildConfig": {"build_options": "BuildOptions"},
    "DockerSettings": {"build_config": "BuildConfig", "parent_image_build_config": "BuildConfig", "run_args": "RunArgs"},
    "KubernetesSettings": {"resources": "KubernetesResources", "topology": "KubernetesTopology"},
    "PipelineSettings": {"cache": "Cache", "retry": "Retry", "settings": "Settings"},
    "Retry": {"on_oom": "OnOom"},
    "Settings": {"docker": "DockerSettings", "kubernetes": "KubernetesSettings", "resources": "ResourceSettings", "slurm": "SlurmSettings"},
    "StepSettings": {"cache": "Cache", "retry": "Retry", "settings": "Settings"},
}

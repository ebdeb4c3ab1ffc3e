#include "orchestrators/docker/container_spec.hpp"

#include <unistd.h>

#include <array>
#include <cmath>

#include "docker/step_rights.hpp"
#include "orchestrators/docker/init_program.hpp"
#include "orchestrators/docker/service_spec.hpp"
#include "orchestrators/nodes.hpp"
#include "orchestrators/preflight.hpp"

namespace pipeline::orchestrators::docker_engine {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

/// A member of `run_args` (docker's SDK) and the path of the same value in the API.
struct Member {
  const char* argument;
  const char* name;
};
constexpr std::array host_members{
    Member{"cap_add", "CapAdd"},
    Member{"cap_drop", "CapDrop"},
    Member{"cpu_shares", "CpuShares"},
    Member{"device_cgroup_rules", "DeviceCgroupRules"},
    Member{"dns", "Dns"},
    Member{"dns_search", "DnsSearch"},
    Member{"extra_hosts", "ExtraHosts"},
    Member{"group_add", "GroupAdd"},
    Member{"init", "Init"},
    Member{"ipc_mode", "IpcMode"},
    Member{"mem_reservation", "MemoryReservation"},
    Member{"mem_swappiness", "MemorySwappiness"},
    Member{"memswap_limit", "MemorySwap"},
    Member{"oom_score_adj", "OomScoreAdj"},
    Member{"pid_mode", "PidMode"},
    Member{"pids_limit", "PidsLimit"},
    Member{"privileged", "Privileged"},
    Member{"read_only", "ReadonlyRootfs"},
    Member{"security_opt", "SecurityOpt"},
    Member{"shm_size", "ShmSize"},
    Member{"storage_opt", "StorageOpt"},
    Member{"sysctls", "Sysctls"},
    Member{"tmpfs", "Tmpfs"},
    Member{"userns_mode", "UsernsMode"},
    Member{"uts_mode", "UTSMode"},
};
constexpr std::array config_members{Member{"domainname", "Domainname"},
                                    Member{"hostname", "Hostname"}};

/// Parses `/dev/fuse` or `/dev/host:/dev/container:rwm`.
json device(const std::string& text) {
  const auto first = text.find(':');
  const auto second = first == text.npos ? text.npos : text.find(':', first + 1);
  json result;
  result["PathOnHost"] = text.substr(0, first);
  result["PathInContainer"] =
      first == text.npos
          ? text
          : text.substr(first + 1, second == text.npos ? text.npos : second - first - 1);
  result["CgroupPermissions"] = second == text.npos ? "rwm" : text.substr(second + 1);
  return result;
}

void apply_run_args(const std::map<std::string, Json>& arguments, json& config, json& host) {
  for (const auto& [argument, name] : host_members)
    if (auto found = arguments.find(argument); found != arguments.end())
      host[name] = *found->second;
  for (const auto& [argument, name] : config_members)
    if (auto found = arguments.find(argument); found != arguments.end())
      config[name] = *found->second;
  if (auto devices = arguments.find("devices"); devices != arguments.end())
    for (const auto& text : *devices->second)
      host["Devices"].push_back(device(text.get<std::string>()));
  if (auto limits = arguments.find("ulimits"); limits != arguments.end()) {
    for (const auto& [name, limit] : limits->second->items()) {
      json entry;
      entry["Name"] = name;
      entry["Soft"] = limit["soft"];
      entry["Hard"] = limit["hard"];
      host["Ulimits"].push_back(std::move(entry));
    }
  }
}

enum class Access { read_only, writable };

/// Returns an item of HostConfig.Mounts. The engine refuses a mount whose source is missing;
/// HostConfig.Binds would create the source as a folder owned by root.
json mount(const char* type, const std::string& source, const std::string& target, Access access) {
  json result;
  result["Type"] = type;
  result["Source"] = source;
  result["Target"] = target;
  result["ReadOnly"] = access == Access::read_only;
  return result;
}

/// Parses `SOURCE:TARGET[:ro|rw]`.
json volume(const std::string& text, const ContainerOptions& options) {
  const auto first = text.find(':');
  const auto second = text.find(':', first + 1);
  const auto source = text.substr(0, first);
  const auto target = text.substr(first + 1, second == text.npos ? text.npos : second - first - 1);
  const bool is_read_only = second != text.npos && text.substr(second + 1) == "ro";
  const auto access = is_read_only ? Access::read_only : Access::writable;
  if (source == "~" || source.starts_with("~/"))
    return mount(
        "bind",
        (options.home / source.substr(std::min<std::size_t>(2, source.size()))).lexically_normal(),
        target, access);
  if (source.starts_with('/') || source.starts_with('.'))
    return mount("bind", (options.root / source).lexically_normal(), target, access);
  return mount("volume", source, target, access);
}

json mounts(const AttemptSpec& attempt, const ContainerOptions& options) {
  const auto& layout = containers::container_layout();
  json all = read_only_mounts(attempt, options);
  if (!options.elsewhere) {
    const auto writable = Access::writable;
    all.push_back(mount("bind", attempt.outputs, layout.outputs, writable));
    all.push_back(mount("bind", attempt.scratch, containers::container_scratch, writable));
    if (!attempt.checkpoint.empty())
      all.push_back(mount("bind", attempt.checkpoint, layout.checkpoint, writable));
    if (!options.passwd.empty())
      all.push_back(mount("bind", options.passwd, "/etc/passwd", Access::read_only));
  }
  for (const auto& text : attempt.step.settings->docker.volumes.items())
    all.push_back(volume(text, options));
  return all;
}

json environment(const AttemptSpec& attempt, const ContainerOptions& options) {
  auto variables = variables_of(attempt, containers::container_layout());
  const auto& image = attempt.step.settings->docker.environment;
  containers::add_defaults(variables, attempt, attempt.gpus.size());
  // Python's getpass, and with it torch's caches, read these variables before /etc/passwd.
  if (!options.user_name.empty())
    for (const auto* name : {"USER", "LOGNAME"})
      if (!image.contains(name)) variables.try_emplace(name, options.user_name);
  if (attempt.process && attempt.process->addresses->has_agents)
    variables[agent_secret_name] = attempt.process->addresses->secret;
  json list = json::array();
  for (const auto& [name, value] : variables) list.push_back(name + "=" + value);
  return list;
}

/// Returns the size of /dev/shm; nothing for the engine's default, 64 MiB. With the default, a data
/// loader with workers ends with SIGBUS, so a step with GPUs gets the kernel's default for a tmpfs:
/// half of the available memory. Unused shared memory costs nothing, and used shared memory counts
/// as the step's.
std::optional<Bytes> shared_memory(const AttemptSpec& attempt, const ContainerOptions& options) {
  const auto& resources = attempt.step.settings->resources;
  if (resources.shm_size || attempt.gpus.empty()) return resources.shm_size;
  const auto half = resources.memory.value_or(options.memory) / 2;
  return half > 0 ? std::optional(half) : std::nullopt;
}

}  // namespace

json read_only_mounts(const AttemptSpec& attempt, const ContainerOptions& options) {
  const auto& layout = containers::container_layout();
  json all = json::array();
  if (options.elsewhere) {
    json own;  // Without a name the volume is removed with its container.
    own["Type"] = "volume";
    own["Target"] = containers::container_folder;
    own["VolumeOptions"]["NoCopy"] = true;
    all.push_back(std::move(own));
    return all;
  }
  const auto read_only = Access::read_only;
  all.push_back(mount("bind", attempt.code, layout.code, read_only));
  for (const auto& input : attempt.inputs)
    all.push_back(mount("bind", input.path, path_of(input, layout), read_only));
  if (!options.init.empty()) all.push_back(mount("bind", options.init, init_path, read_only));
  return all;
}

std::optional<docker::GpuMethod> replaceable_gpu_method(const AttemptSpec& attempt,
                                                        const ContainerOptions& options) {
  if (!options.gpu_access) return std::nullopt;
  return options.gpu_access->replaceable_method(
      settings::gpu_request(attempt.step.settings->resources));
}

void add_gpus(json& body, const AttemptSpec& attempt, const ContainerOptions& options) {
  std::vector<docker::GpuName> names;
  for (const auto& gpu : attempt.gpus) names.push_back({gpu.uuid, gpu.index});
  options.gpu_access->give(body, settings::gpu_request(attempt.step.settings->resources), names);
}

json endpoint_at(const std::string& address) {
  return {{"IPAMConfig", {{"IPv4Address", address}}}};
}

std::string container_name(const AttemptSpec& attempt) {
  return "pipe-" + attempt.run_id + "-" + attempt.step.name + "-" + std::to_string(attempt.number) +
         // A shell is not an attempt, and there may be several.
         (attempt.process ? "-" + std::to_string(attempt.process->rank) : "") +
         (attempt.shell ? "-shell-" + std::to_string(::getpid()) : "");
}

StringMap container_labels(const AttemptSpec& attempt, const ContainerOptions& options) {
  // The label of the state folder is left out; otherwise remove_orphans() would remove the shell.
  if (attempt.shell)
    return {{"pipe.shell", std::to_string(::getpid())}, {"pipe.step", attempt.step.name}};
  StringMap labels{{"pipe.run", attempt.run_id},
                   {"pipe.step", attempt.step.name},
                   {"pipe.attempt", std::to_string(attempt.number)},
                   {"pipe.pipeline", attempt.pipeline},
                   {"pipe.state", options.owner}};
  if (attempt.process) labels[rank_label] = std::to_string(attempt.process->rank);
  return labels;
}

std::vector<std::string> label_filters(const AttemptSpec& attempt,
                                       const ContainerOptions& options) {
  std::vector<std::string> filters;
  for (const auto& [name, value] : container_labels(attempt, options))
    filters.push_back(name + "=" + value);
  return filters;
}

std::string gpus_text(const std::vector<AssignedGpu>& gpus) {
  std::string text;
  for (const auto& gpu : gpus) text += (text.empty() ? "" : ",") + gpu.uuid;
  return text;
}

json container_body(const AttemptSpec& attempt, const ContainerOptions& options) {
  const auto& docker = attempt.step.settings->docker;
  const auto& resources = attempt.step.settings->resources;
  auto labels = docker.labels;
  for (const auto& [name, value] : container_labels(attempt, options)) labels[name] = value;
  if (!attempt.gpus.empty()) labels[gpus_label] = gpus_text(attempt.gpus);

  json config;
  config["Image"] = options.image;
  auto layout = containers::container_layout();
  layout.program = options.program;
  auto command = command_of(attempt, layout);
  if (attempt.process && attempt.process->addresses->has_agents) {
    const auto agent = agent_words(attempt, init_path);
    command.insert(command.begin(), agent.begin(), agent.end());
  }
  if (!options.init.empty()) command.insert(command.begin(), {init_path, "init"});
  config["Entrypoint"] = options.gate ? behind_gate(command, attempt.gpus)
                                      // Replaces the image's own entry point and command.
                                      : command;
  config["WorkingDir"] = containers::container_layout().code;
  config["Env"] = environment(attempt, options);
  config["User"] = docker.user.value_or(options.user);
  config["Labels"] = labels;
  config["StopSignal"] = "SIGTERM";
  config["Healthcheck"]["Test"] = {"NONE"};
  if (attempt.shell) {
    config["Entrypoint"] = attempt.shell->words;
    config["Tty"] = attempt.shell->has_terminal;
    for (const auto* name :
         {"OpenStdin", "StdinOnce", "AttachStdin", "AttachStdout", "AttachStderr"})
      config[name] = true;
  }

  json host;
  host["Mounts"] = mounts(attempt, options);
  if (attempt.shell) host["AutoRemove"] = true;
  host["Init"] = true;  // Forwards SIGTERM, and reaps processes that a step leaves.
  if (const auto network = first_network(docker, options); !network.empty())
    host["NetworkMode"] = network;
  if (!options.address.empty() && host["NetworkMode"] == options.network)
    config["NetworkingConfig"]["EndpointsConfig"][options.network] = endpoint_at(options.address);
  if (resources.memory) host["Memory"] = host["MemorySwap"] = *resources.memory;
  if (resources.cpu_count) host["NanoCpus"] = std::llround(*resources.cpu_count * 1e9);
  if (const auto size = shared_memory(attempt, options)) host["ShmSize"] = *size;
  apply_run_args(docker.run_args, config, host);
  pipeline::docker::withhold_rights(host);
  config["HostConfig"] = std::move(host);
  if (attempt.gpus.empty())
    docker::withhold_gpus(config);
  else
    add_gpus(config, attempt, options);
  return config;
}

std::optional<Failure> missing_volume(const StepSpec& step, const ContainerOptions& options) {
  std::error_code ignored;
  for (const auto& text : step.settings->docker.volumes.items()) {
    const auto wanted = volume(text, options);
    const auto source = wanted["Source"].get<std::string>();
    if (wanted["Type"] == "bind" && !fs::exists(source, ignored))
      return Failure{
          FailureKind::not_started,
          "could not start: " + source + " of `docker.volumes: " + text + "` does not exist",
          {"make it, or correct the path"},
          {}};
  }
  return std::nullopt;
}

}  // namespace pipeline::orchestrators::docker_engine

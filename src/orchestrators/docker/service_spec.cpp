#include "orchestrators/docker/service_spec.hpp"

#include <cmath>

#include "docker/step_rights.hpp"
#include "orchestrators/containers/service_variables.hpp"
#include "orchestrators/docker/init_program.hpp"

namespace pipeline::orchestrators::docker_engine {
namespace {

using nlohmann::json;

json service_labels(const AttemptSpec& attempt, const ContainerOptions& options,
                    const std::string& name) {
  json labels = attempt.step.settings->docker.labels;
  labels.update(container_labels(attempt, options));
  labels[service_label] = name;
  if (!name.empty() && !attempt.gpus.empty()) labels[gpus_label] = gpus_text(attempt.gpus);
  return labels;
}

json service_environment(const AttemptSpec& attempt, const ServiceSpec& service) {
  json list = json::array();
  for (const auto& [name, value, is_secret] : containers::service_variables(attempt, service))
    list.push_back(name + "=" + value);
  return list;
}

}  // namespace

json network_body(const AttemptSpec& attempt, const ContainerOptions& options) {
  return {{"Name", options.network},
          {"Driver", "bridge"},
          {"Internal", attempt.step.settings->docker.network == "none"},
          {"Labels", service_labels(attempt, options, "")}};
}

json service_body(const AttemptSpec& attempt, const ContainerOptions& options,
                  const std::string& name, const std::string& image) {
  const auto& service = attempt.step.services.at(name);
  json config;
  config["Image"] = image;
  config["Hostname"] = name;
  if (!service.entrypoint.empty()) config["Entrypoint"] = service.entrypoint;
  if (!service.command.empty()) config["Cmd"] = service.command;
  config["Env"] = service_environment(attempt, service);
  config["Labels"] = service_labels(attempt, options, name);
  config["Healthcheck"]["Test"] = {"NONE"};
  json host;
  host["Mounts"] = read_only_mounts(attempt, options);
  host["NetworkMode"] = options.network;
  const auto& resources = service.resources;
  if (resources.memory) host["Memory"] = host["MemorySwap"] = *resources.memory;
  if (resources.cpu_count) host["NanoCpus"] = std::llround(*resources.cpu_count * 1e9);
  if (resources.shm_size) host["ShmSize"] = *resources.shm_size;
  pipeline::docker::withhold_rights(host);
  config["HostConfig"] = std::move(host);
  config["NetworkingConfig"]["EndpointsConfig"][options.network]["Aliases"] = {name};
  if (attempt.gpus.empty())
    pipeline::docker::withhold_gpus(config);
  else
    add_gpus(config, attempt, options);
  return config;
}

std::vector<std::string> readiness_check(const ServiceReady& ready,
                                         const ContainerOptions& options) {
  if (!ready.command.empty()) return ready.command;
  if (options.init.empty()) return {};
  std::vector<std::string> words{init_path, "ready", std::to_string(ready.port)};
  if (!ready.http.empty()) words.push_back(ready.http);
  return words;
}

std::string first_network(const DockerSettings& docker, const ContainerOptions& options) {
  const auto given = docker.network.value_or("");
  const bool is_replaced = given.empty() || given == "none" || given == "bridge";
  return !options.network.empty() && is_replaced ? options.network : given;
}

}  // namespace pipeline::orchestrators::docker_engine

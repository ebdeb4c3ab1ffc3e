#include "orchestrators/docker/own_container.hpp"

#include <nlohmann/json.hpp>

#include "core/log.hpp"
#include "orchestrators/docker/file_copy.hpp"
#include "orchestrators/docker/service_network.hpp"
#include "orchestrators/docker/service_spec.hpp"
#include "orchestrators/preflight.hpp"

namespace pipeline::orchestrators::docker_engine {
namespace {

using docker::EngineError;
using nlohmann::json;

/// Returns the existing container with the attempt's name. Throws EnvironmentError if it belongs to
/// something else, and EngineError with status 404 if it is gone.
async::Task<OwnContainer> find_own(docker::EngineApi& engine, const Attempt& attempt,
                                   const ContainerOptions& options) {
  const auto name = container_name(attempt);
  const auto container = co_await engine.call("GET", "/containers/" + name + "/json");
  const auto labels = container.value(json::json_pointer("/Config/Labels"), json::object());
  for (const auto& [label, value] : container_labels(attempt, options))
    if (labels.value(label, std::string()) != value)
      throw core::EnvironmentError("cannot create the container " + name +
                                       ": there is one of that name, and it is not this step's",
                                   {"`docker inspect " + name +
                                    "` shows whose it is; `docker rm -f " + name + "` removes it"});
  const auto status = container.value(json::json_pointer("/State/Status"), std::string());
  // behind_gate() puts gate_name there.
  const auto entry = container.value(json::json_pointer("/Config/Entrypoint/3"), json());
  OwnContainer found;
  found.id = container.at("Id").get<std::string>();
  found.started = status == "running" || status == "exited";
  found.gated = entry == gate_name;
  const bool same_gpus = labels.value(gpus_label, std::string()) ==
                         // The GPUs that are reserved for the attempt now.
                         gpus_text(attempt.gpus);
  for (const auto& mount : container.value("Mounts", json::array())) {
    const auto target = mount.value("Destination", std::string());
    if (target == containers::container_folder) found.copies = true;
    if (found.copies || (target == containers::container_layout().outputs &&
                         mount.value("Source", std::string()) == attempt.outputs))
      found.usable = found.started && same_gpus;
  }
  co_return found;
}

/// Returns true if another container has the name. Podman responds with 500 then, Docker with 409.
bool is_name_conflict(const EngineError& error) {
  return error.status() == 409 ||
         (error.status() == 500 &&
          std::string_view(error.what()).find("already in use") != std::string_view::npos);
}

}  // namespace

async::Task<OwnContainer> obtain_container(docker::EngineApi& engine, const Attempt& attempt,
                                           ContainerOptions& options) {
  const auto name = container_name(attempt);
  const auto platform = attempt.step.settings->docker.platform.value_or("");
  for (int attempts_left = 3;; --attempts_left) {
    try {
      const auto body = container_body(attempt, options);
      OwnContainer made;
      made.id = co_await engine.create_container(name, body, platform, &attempt.io.cancel);
      const auto* info = co_await engine.info();
      if (info->podman && !options.elsewhere) {
        const bool sees_files = co_await has_files_of(engine, attempt, made.id);
        if (!sees_files) {
          core::log::info("engine: Podman does not see this machine's files, so they are copied");
          options.elsewhere = true;
          co_await engine.remove_container(made.id);
          continue;
        }
      }
      const auto& docker = attempt.step.settings->docker;
      if (!options.network.empty() && first_network(docker, options) != options.network)
        co_await join_network(engine, options.network, made.id, options.address);
      made.gated = options.gate;
      made.usable = true;
      made.copies = options.elsewhere;
      co_return made;
    } catch (const EngineError& error) {
      if (!options.elsewhere && is_elsewhere(error, attempt)) {
        options.elsewhere = true;
        continue;
      }
      if (!is_name_conflict(error) || attempts_left == 0) throw;
    }
    OwnContainer found;
    try {
      found = co_await find_own(engine, attempt, options);
    } catch (const EngineError& error) {
      if (error.status() != 404) throw;
      continue;  // The container was being removed.
    }
    if (found.usable) co_return found;
    co_await engine.remove_container(found.id);
  }
}

}  // namespace pipeline::orchestrators::docker_engine

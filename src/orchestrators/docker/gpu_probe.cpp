#include "orchestrators/docker/gpu_probe.hpp"

#include "core/log.hpp"
#include "docker/short_container.hpp"
#include "gpu/errors.hpp"
#include "gpu/smi.hpp"

namespace pipeline::orchestrators::docker_engine {
namespace {

using docker::EngineApi;
using docker::EngineError;
using nlohmann::json;

gpu::Unavailable unavailable(const std::string& text, const std::string& otherwise) {
  if (auto trouble = gpu::gpu_trouble(text)) return {trouble->cause, std::move(trouble->advice)};
  return {otherwise, {}};
}

}  // namespace

async::Task<gpu::Inventory> probe_gpus(EngineApi& engine, docker::GpuAccess& access,
                                       std::string image, StringMap labels,
                                       core::CancelSource& cancel) {
  gpu::Inventory inventory;
  if (access.methods().empty()) {
    inventory.unavailable = gpu::Unavailable{access.problem(), {}};
    co_return inventory;
  }
  for (;;) {
    const auto method = access.methods().front();
    const auto name = "pipe-" + labels["pipe.run"] + "-gpus";
    json body;
    body["Image"] = image;
    body["Entrypoint"] = {"/bin/sh", "-c", std::string(gpu::smi_script())};
    body["Labels"] = labels;
    body["User"] = "0:0";
    body["Env"] = json::array({"NVIDIA_DRIVER_CAPABILITIES=utility"});
    body["HostConfig"]["NetworkMode"] = "none";
    access.give(body, {}, {});
    std::vector<file_tree::ContextFile> no_files;
    std::string any_platform;
    std::optional<std::string> refused;
    try {
      const auto [text, code] = co_await docker::run_to_end(
          engine, name, std::move(body), std::move(no_files), std::move(any_platform), &cancel);
      inventory = gpu::read_smi(text);
      if (code != 0 || inventory.devices.empty())
        inventory.unavailable = unavailable(
            text,
            code == 0 ? "the engine's machine shows no NVIDIA GPU"
            : code == 127
                ? "the engine gives containers no nvidia-smi: it has no NVIDIA Container Toolkit"
                : "nvidia-smi fails in a container of " + image);
      co_return inventory;
    } catch (const EngineError& error) {
      refused = error.what();
    }
    if (access.try_next(method, *refused)) continue;
    inventory.unavailable = unavailable(*refused, *refused);
    co_return inventory;
  }
}

}  // namespace pipeline::orchestrators::docker_engine

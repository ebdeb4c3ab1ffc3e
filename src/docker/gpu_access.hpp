/// @file
/// Methods by which an engine gives GPUs to containers. Engines support different methods and do
/// not fully report which. The likeliest method is tried first; if the engine reports that it lacks
/// the method, the next one is tried.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "docker/engine_api.hpp"
#include "settings/accelerator.hpp"

namespace pipeline::docker {

enum class GpuWay {
  device_request,  ///< HostConfig.DeviceRequests, as `docker run --gpus` sends it: the engine calls
                   ///< NVIDIA's hook (from 28.3 on, its own CDI).
  cdi,      ///< A device request of the driver `cdi`: the engine reads the files of the Container
            ///< Device Interface. On by default from 28.2; Podman 5.4.
  runtime,  ///< `Runtime: nvidia` and NVIDIA_VISIBLE_DEVICES: NVIDIA's runtime adds the GPUs.
};
/// Returns `device requests`, `CDI`, or `the runtime nvidia`.
std::string_view to_string(GpuWay way);

/// The names of a GPU in the engine.
struct GpuName {
  std::string uuid;  ///< `GPU-...` or `MIG-...`.
  unsigned index = 0;
};

class GpuAccess {
 public:
  /// @param system response of GET /info
  GpuAccess(const EngineInfo& engine, const nlohmann::json& system);

  /// If empty, `problem()` has the reason.
  const std::vector<GpuWay>& ways() const { return ways_; }
  /// True if the engine's configuration shows that it has a method. Without that, a device request
  /// is tried nevertheless.
  bool certain() const { return certain_; }
  const std::string& problem() const { return problem_; }

  /// Handles a refusal: returns true if the engine lacks this method and there is another one,
  /// which is then the first.
  bool try_next(GpuWay refused, std::string_view text);

  /// Adds the GPUs to a body of POST /containers/create; if none are named, all GPUs of the engine.
  /// The body's `Env` must have been set already.
  void give(nlohmann::json& body, const settings::GpuRequest& request,
            std::span<const GpuName> gpus) const;

 private:
  std::string cdi_name(const GpuName& gpu) const;

  std::vector<GpuWay> ways_;
  std::set<std::string> cdi_devices_;  ///< `nvidia.com/gpu=0` and so on, if the engine lists them.
  std::string problem_;
  bool certain_ = true;
};

/// Hides GPUs from a container, whatever variables its image has. Otherwise NVIDIA's runtime, where
/// it is the engine's default, would add all of them.
void withhold_gpus(nlohmann::json& body);

}  // namespace pipeline::docker

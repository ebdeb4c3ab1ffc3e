/// @file
/// How an engine gives GPUs to containers. Engines differ in what they can, and none says all of
/// it: the likeliest way is tried first, and when the engine says that it lacks it, the next.
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
  device_request,  ///< HostConfig.DeviceRequests, as `docker run --gpus` makes: the engine calls
                   ///< NVIDIA's hook (or, from 28.3 on, its own CDI).
  cdi,  ///< A device request of the driver `cdi`: the engine reads the Container Device Interface's
        ///< files. On by default from 28.2; Podman 5.4.
  runtime,  ///< `Runtime: nvidia` and NVIDIA_VISIBLE_DEVICES: NVIDIA's runtime does it.
};
/// `device requests`, `CDI`, `the runtime nvidia`
std::string_view to_string(GpuWay way);

/// A GPU as an engine may know it.
struct GpuName {
  std::string uuid;  ///< `GPU-...` or `MIG-...`
  unsigned index = 0;
};

class GpuAccess {
 public:
  /// @param system what GET /info says
  GpuAccess(const EngineInfo& engine, const nlohmann::json& system);

  /// None: `problem()` says why.
  const std::vector<GpuWay>& ways() const { return ways_; }
  /// One that the engine is known to have, by its configuration; a device request is worth a try
  /// without that too.
  bool certain() const { return certain_; }
  const std::string& problem() const { return problem_; }

  /// After a refusal of the first way: true if it was for lack of that way and there is another,
  /// which is the first then.
  bool try_next(GpuWay refused, std::string_view text);

  /// Adds the GPUs to a body of POST /containers/create; none named: all that the engine has. Its
  /// variables are in `Env` already.
  void give(nlohmann::json& body, const settings::GpuRequest& request,
            std::span<const GpuName> gpus) const;

 private:
  std::string cdi_name(const GpuName& gpu) const;

  std::vector<GpuWay> ways_;
  std::set<std::string> cdi_devices_;  ///< `nvidia.com/gpu=0`, if the engine lists them.
  std::string problem_;
  bool certain_ = true;
};

/// Keeps GPUs from a container, whatever its image's environment says: where NVIDIA's runtime is
/// the engine's default, that would be all of them.
void withhold_gpus(nlohmann::json& body);

}  // namespace pipeline::docker

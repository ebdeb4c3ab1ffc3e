/// @file
/// The methods by which an engine gives GPUs to containers. Engines support different methods, and
/// do not fully report which. The likeliest method is tried first; if the engine reports that it
/// lacks the method, the next one is tried.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "docker/engine_api.hpp"
#include "settings/accelerator.hpp"

namespace pipeline::docker {

enum class GpuMethod {
  device_request,  ///< HostConfig.DeviceRequests, as `docker run --gpus` sends it: the engine calls
                   ///< NVIDIA's hook (from 28.3 on, its own CDI).
  cdi,      ///< A device request of the driver `cdi`: the engine reads the files of the Container
            ///< Device Interface (CDI). On by default from Docker 28.2; in Podman from 5.4.
  runtime,  ///< `Runtime: nvidia` and NVIDIA_VISIBLE_DEVICES: NVIDIA's runtime adds the GPUs.
};
/// Returns `device requests`, `CDI`, or `the runtime nvidia`.
std::string_view to_string(GpuMethod method);

/// The names by which a container asks the engine for a GPU.
struct GpuName {
  std::string uuid;  ///< `GPU-...` or `MIG-...`.
  unsigned index = 0;
};

class GpuAccess {
 public:
  /// @param system response of GET /info
  GpuAccess(const EngineInfo& engine, const nlohmann::json& system);

  /// Returns the methods to try, the likeliest first. If there are none, problem() has the reason.
  const std::vector<GpuMethod>& methods() const { return methods_; }
  /// Returns true if the engine's configuration shows that it supports a method. If not, a device
  /// request is tried all the same.
  bool is_certain() const { return is_certain_; }
  /// Returns the reason why there are no methods; empty if there are some.
  const std::string& problem() const { return problem_; }

  /// Handles the engine's refusal to create or start a container with a method. If the engine lacks
  /// the method, and there is another one, makes that the first, and returns true.
  /// @param text the engine's message
  bool try_next(GpuMethod refused, std::string_view text);

  /// Returns the method by which give() asks for the GPUs; nothing if the request's driver demands
  /// CDI, so that no other method can be tried and a refusal concerns this request alone.
  std::optional<GpuMethod> replaceable_method(const settings::GpuRequest& request) const;

  /// Adds the GPUs to a body of POST /containers/create; all GPUs of the engine if `gpus` is empty.
  /// The body's `Env` must have been set already.
  void give(nlohmann::json& body, const settings::GpuRequest& request,
            std::span<const GpuName> gpus) const;

 private:
  std::string cdi_name(const GpuName& gpu) const;

  std::vector<GpuMethod> methods_;
  std::set<std::string> cdi_devices_;  ///< `nvidia.com/gpu=0` and so on, if the engine lists them.
  std::string problem_;
  bool is_certain_ = true;
};

/// Hides all GPUs from a container, whatever variables its image has. If NVIDIA's runtime is the
/// engine's default, it would otherwise add all GPUs.
void withhold_gpus(nlohmann::json& body);

}  // namespace pipeline::docker

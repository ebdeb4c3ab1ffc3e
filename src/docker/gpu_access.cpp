#include "docker/gpu_access.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "core/joined.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "docker/json_text.hpp"

namespace pipeline::docker {
namespace {

using nlohmann::json;

constexpr std::string_view cdi_kind = "nvidia.com/gpu=";

/// Texts, in lower case, by which engines say that they do not support a method. An engine that
/// supports the method, but refuses a certain device, answers otherwise.
constexpr std::array no_device_requests{"could not select device driver",
                                        "invoking the nvidia container runtime hook directly"};
constexpr std::array no_cdi{"could not select device driver", "no cdi specification directories",
                            "cdi cache initialization failed", "unresolvable cdi devices"};
constexpr std::array no_runtime{"unknown runtime specified", "invalid runtime name"};

bool has_runtime(const json& system) {
  const auto runtimes = system.find("Runtimes");
  return runtimes != system.end() && runtimes->is_object() && runtimes->contains("nvidia");
}

bool has_specifications(const json& system) {
  const auto folders = system.find("CDISpecDirs");
  return folders != system.end() && folders->is_array() && !folders->empty();
}

std::set<std::string> cdi_devices(const json& system) {
  std::set<std::string> names;
  const auto devices = system.find("DiscoveredDevices");
  if (devices == system.end() || !devices->is_array()) return names;
  for (const auto& device : *devices)
    if (const auto name = text_at(device, "ID"); name.starts_with(cdi_kind)) names.insert(name);
  return names;
}

/// Returns true for Podman 5.4 and newer, which accepts device requests of CDI. Older versions
/// ignore all device requests.
bool podman_has_cdi(const std::string& version) {
  int major = 0, minor = 0;
  return std::sscanf(version.c_str(), "%d.%d", &major, &minor) == 2 &&
         std::pair(major, minor) >= std::pair(5, 4);
}

void set_variable(json& body, const std::string& name, const std::string& value) {
  auto& variables = body["Env"];
  if (!variables.is_array()) variables = json::array();
  const auto has_name = [&](const json& variable) {
    return variable.get_ref<const std::string&>().starts_with(name + "=");
  };
  variables.erase(std::remove_if(variables.begin(), variables.end(), has_name), variables.end());
  variables.push_back(name + "=" + value);
}

}  // namespace

std::string_view to_string(GpuMethod method) {
  switch (method) {
    case GpuMethod::device_request: return "device requests";
    case GpuMethod::cdi: return "CDI";
    case GpuMethod::runtime: return "the runtime nvidia";
  }
  return "";
}

GpuAccess::GpuAccess(const EngineInfo& engine, const json& system)
    : cdi_devices_(cdi_devices(system)) {
  if (engine.podman) {
    if (podman_has_cdi(engine.version))
      methods_ = {GpuMethod::cdi};
    else
      problem_ = "Podman " + engine.version +
                 " ignores GPUs that are requested through its API: 5.4 and newer provide them";
    return;
  }
  const bool runtime = has_runtime(system);
  const bool lists_cdi = !cdi_devices_.empty();
  // An engine before API 1.50 (28.2) does not list CDI devices, but may have some if CDI is
  // enabled.
  constexpr int first_api_that_lists_cdi = 50;
  const bool may_have_cdi =
      has_specifications(system) && !speaks_api(engine, first_api_that_lists_cdi);
  // A device request needs NVIDIA's hook, which is installed with its runtime: without the runtime
  // CDI is likelier to work.
  const bool cdi_first = lists_cdi && !runtime;
  if (cdi_first) methods_.push_back(GpuMethod::cdi);
  methods_.push_back(GpuMethod::device_request);
  if (!cdi_first && (lists_cdi || may_have_cdi)) methods_.push_back(GpuMethod::cdi);
  if (runtime) methods_.push_back(GpuMethod::runtime);
  is_certain_ = runtime || lists_cdi;
}

bool GpuAccess::try_next(GpuMethod refused, std::string_view text) {
  const auto lower = core::lower(text);
  const auto says = [&](std::string_view part) { return lower.find(part) != lower.npos; };
  const bool lacks_method =
      refused == GpuMethod::device_request
          ? std::any_of(no_device_requests.begin(), no_device_requests.end(), says)
      : refused == GpuMethod::cdi ? std::any_of(no_cdi.begin(), no_cdi.end(), says)
                                  : std::any_of(no_runtime.begin(), no_runtime.end(), says);
  if (!lacks_method) return false;
  if (methods_.front() != refused) return true;  // Another attempt has already switched.
  if (methods_.size() < 2) return false;
  methods_.erase(methods_.begin());
  core::log::info("engine: no GPUs are provided by " + std::string(to_string(refused)) + " (" +
                  std::string(text) + "); trying " + std::string(to_string(methods_.front())));
  return true;
}

std::string GpuAccess::cdi_name(const GpuName& gpu) const {
  const auto by_uuid = std::string(cdi_kind) + gpu.uuid,
             by_index = std::string(cdi_kind) + std::to_string(gpu.index);
  // Versions of nvidia-ctk before 1.14 wrote indices only.
  return !cdi_devices_.contains(by_uuid) && cdi_devices_.contains(by_index) &&
                 !gpu.uuid.starts_with("MIG-")
             ? by_index
             : by_uuid;
}

std::optional<GpuMethod> GpuAccess::replaceable_method(const settings::GpuRequest& request) const {
  if (request.driver == "cdi") return std::nullopt;
  return methods_.empty() ? GpuMethod::device_request : methods_.front();
}

void GpuAccess::give(json& body, const settings::GpuRequest& request,
                     std::span<const GpuName> gpus) const {
  const auto method = replaceable_method(request).value_or(GpuMethod::cdi);
  std::vector<std::string> ids;
  for (const auto& gpu : gpus) ids.push_back(method == GpuMethod::cdi ? cdi_name(gpu) : gpu.uuid);
  const auto visible = ids.empty() ? "all" : core::joined(ids, ",");
  json wanted;
  switch (method) {
    case GpuMethod::device_request: {
      auto capabilities = request.capabilities;
      if (std::find(capabilities.begin(), capabilities.end(), "gpu") == capabilities.end())
        capabilities.insert(capabilities.begin(), "gpu");
      wanted["Driver"] = request.driver;
      wanted["Capabilities"] = json::array({capabilities});
      if (!request.options.empty()) wanted["Options"] = request.options;
      if (ids.empty())
        wanted["Count"] = -1;
      else
        wanted["DeviceIDs"] = ids;
      // The engine sets the variable, too, but would keep the image's value beside its own.
      set_variable(body, "NVIDIA_VISIBLE_DEVICES", visible);
      break;
    }
    case GpuMethod::cdi:
      wanted["Driver"] = "cdi";
      if (ids.empty()) ids.emplace_back("nvidia.com/gpu=all");
      wanted["DeviceIDs"] = ids;
      // NVIDIA's runtime, if it is the engine's default, would otherwise add the GPUs of the
      // image's variable.
      set_variable(body, "NVIDIA_VISIBLE_DEVICES", "void");
      break;
    case GpuMethod::runtime:
      body["HostConfig"]["Runtime"] = "nvidia";
      set_variable(body, "NVIDIA_VISIBLE_DEVICES", visible);
      if (!request.capabilities.empty())
        set_variable(body, "NVIDIA_DRIVER_CAPABILITIES", core::joined(request.capabilities, ","));
      return;
  }
  body["HostConfig"]["DeviceRequests"].push_back(std::move(wanted));
}

void withhold_gpus(json& body) { set_variable(body, "NVIDIA_VISIBLE_DEVICES", "void"); }

}  // namespace pipeline::docker

#include "docker/engine_info.hpp"

#include <algorithm>
#include <charconv>

namespace pipeline::docker {

bool has_containerd_store(const nlohmann::json& system_info) {
  if (!system_info.is_object()) return false;
  const auto status = system_info.value("DriverStatus", nlohmann::json::array());
  return status.is_array() &&
         std::any_of(status.begin(), status.end(), [](const nlohmann::json& row) {
           return row.is_array() && row.size() == 2 && row[0] == "driver-type" &&
                  row[1] == "io.containerd.snapshotter.v1";
         });
}

bool has_security_option(const nlohmann::json& system_info, std::string_view name) {
  if (!system_info.is_object()) return false;
  const auto options = system_info.value("SecurityOptions", nlohmann::json());
  return options.is_array() &&
         std::any_of(options.begin(), options.end(), [name](const nlohmann::json& option) {
           // `name=seccomp,profile=builtin`
           const auto text = option.is_string() ? option.get<std::string>() : std::string();
           const auto named = "name=" + std::string(name);
           return text == named || text.starts_with(named + ",");
         });
}

bool speaks_api(const EngineInfo& info, int minor) {
  const auto& text = info.api_version;
  int own = 0;
  const auto dot = text.find('.');
  if (dot == text.npos) return false;
  std::from_chars(text.data() + dot + 1, text.data() + text.size(), own);
  return text.starts_with("1.") && own >= minor;
}

}  // namespace pipeline::docker

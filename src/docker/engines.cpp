#include "docker/engines.hpp"

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"

namespace pipeline::docker {

std::vector<RunEngine> find_engines(const StringMap& connection) {
  const auto list = connection.find(engines_field);
  if (list == connection.end() || list->second.empty()) return {{find_endpoint(), {}}};
  std::vector<RunEngine> engines;
  for (const auto& engine : core::parse_json(list->second)) {
    const auto text = [&](const char* key) { return engine.value(key, std::string()); };
    engines.push_back({endpoint_at(text("host"), text("certificates")), text("address")});
  }
  return engines;
}

std::string host_of_endpoint(const std::string& url) {
  const auto scheme = url.find("://");
  if (scheme == url.npos || url.starts_with("unix://")) return {};
  auto host = url.substr(scheme + 3);
  host = host.substr(0, host.find('/'));
  if (const auto at = host.rfind('@'); at != host.npos) host = host.substr(at + 1);
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

}  // namespace pipeline::docker

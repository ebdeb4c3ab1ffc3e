#include "docker/reference.hpp"

#include <nlohmann/json.hpp>

#include "settings/image_reference.hpp"

namespace pipeline::docker {
namespace {

bool is_hub(std::string_view host) {
  return host == "docker.io" || host == "index.docker.io" || host == "registry-1.docker.io";
}

/// Returns the name as engines write it: without Docker Hub's host and its `library/`.
std::string_view familiar(std::string_view name) {
  if (const auto slash = name.find('/'); slash != name.npos && is_hub(name.substr(0, slash)))
    name.remove_prefix(slash + 1);
  constexpr std::string_view library = "library/";
  if (name.starts_with(library)) name.remove_prefix(library.size());
  return name;
}

}  // namespace

bool names_registry(std::string_view reference) {
  return !settings::registry_host(reference).empty();
}

std::string registry_of(std::string_view reference) {
  const auto host = settings::registry_host(reference);
  return host.empty() || is_hub(host) ? "docker.io" : std::string(host);
}

std::pair<std::string, std::string> split_reference(std::string_view reference) {
  if (const auto at = reference.find('@'); at != reference.npos) {
    const auto [name, tag] = split_reference(reference.substr(0, at));
    return {name, std::string(reference.substr(at + 1))};
  }
  const auto slash = reference.rfind('/');
  const auto colon = reference.find(':', slash == reference.npos ? 0 : slash);
  if (colon == reference.npos) return {std::string(reference), "latest"};
  return {std::string(reference.substr(0, colon)), std::string(reference.substr(colon + 1))};
}

std::string pinned_reference(const nlohmann::json& image, std::string_view reference) {
  const auto digests = image.find("RepoDigests");
  if (digests == image.end() || !digests->is_array()) return {};
  const auto name = split_reference(reference).first;
  for (const auto& each : *digests) {
    if (!each.is_string()) continue;
    const auto known = split_reference(each.get<std::string>());
    if (familiar(known.first) == familiar(name)) return name + "@" + known.second;
  }
  return {};
}

}  // namespace pipeline::docker

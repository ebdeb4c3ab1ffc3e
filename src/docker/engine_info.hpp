/// @file
/// An engine's description of itself: its version, kind and features.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace pipeline::docker {

struct EngineInfo {
  std::string version, api_version, min_api_version, os, architecture;
  bool podman = false;
  /// Images are built by BuildKit (`POST /build?version=2`). DOCKER_BUILDKIT=0 or 1 overrides the
  /// engine's own preference.
  bool buildkit = false;
};
/// Returns true if the response of GET /info is from a Docker Engine that keeps images in
/// containerd's store.
bool has_containerd_store(const nlohmann::json& system_info);
/// Returns true if the response of GET /info names this security option: `rootless`, `userns` (the
/// containers' users have other numbers on the engine's machine), `selinux`.
bool has_security_option(const nlohmann::json& system_info, std::string_view name);
/// Returns true if the negotiated version of the API is `1.MINOR` or newer.
bool speaks_api(const EngineInfo& info, int minor);

}  // namespace pipeline::docker

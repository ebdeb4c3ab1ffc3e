/// @file
/// The parts of `docker.platform`.
#pragma once

#include <string>
#include <string_view>

namespace pipeline::settings {

/// Returns the architecture of `OS/ARCHITECTURE[/VARIANT]`, in Go's words (`amd64`), as engines and
/// nodes' labels have it; empty if the platform has none.
inline std::string architecture_of(std::string_view platform) {
  const auto slash = platform.find('/');
  if (slash == platform.npos) return {};
  return std::string(platform.substr(slash + 1, platform.find('/', slash + 1) - slash - 1));
}

}  // namespace pipeline::settings

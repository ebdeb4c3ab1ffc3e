/// @file
/// Registry credentials stored by `docker login`: credHelpers, credsStore and auths of
/// ~/.docker/config.json (DOCKER_CONFIG).
#pragma once

#include <string>

#include "async/task.hpp"

namespace pipeline::docker {

struct RegistryAuth {
  std::string header;  ///< Value of X-Registry-Auth (base64url JSON); without credentials, that of
                       ///< `{}`. credentials.
  std::string notice;  ///< The reason why a configured helper failed; otherwise empty.
  bool found = false;
};

/// Returns the credentials of a registry, named as by registry_of(); a helper has ten seconds.
/// Never throws: if credentials are not available, `notice` has the reason.
async::Task<RegistryAuth> registry_auth(std::string registry);

}  // namespace pipeline::docker

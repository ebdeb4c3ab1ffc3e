/// @file
/// Registry credentials as `docker login` left them: credHelpers, credsStore, auths of
/// ~/.docker/config.json (DOCKER_CONFIG).
#pragma once

#include <string>

#include "async/task.hpp"

namespace pipeline::docker {

struct RegistryAuth {
  std::string header;  ///< Value of X-Registry-Auth (base64url JSON); that of `{}` if there are no
                       ///< credentials.
  std::string notice;  ///< Why a helper that was configured did not help; empty if all is well.
  bool found = false;
};

/// Looks them up for a registry as registry_of() names it; a helper is given ten seconds. Throws
/// nothing for credentials that cannot be had: `notice` says why.
async::Task<RegistryAuth> registry_auth(std::string registry);

}  // namespace pipeline::docker

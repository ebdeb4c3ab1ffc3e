/// @file
/// Registry credentials stored by `docker login`: credHelpers, credsStore and auths of
/// ~/.docker/config.json (DOCKER_CONFIG).
#pragma once

#include <string>

#include "async/task.hpp"

namespace pipeline::docker {

/// At most one of these is set: an identity token, a registry token, a user with a password.
struct Credentials {
  std::string username, password, identity_token, registry_token;
  bool empty() const {
    return username.empty() && identity_token.empty() && registry_token.empty();
  }
};

struct RegistryAuth {
  Credentials credentials;
  /// Value of X-Registry-Auth (base64url JSON); without credentials, that of `{}`.
  std::string header;
  std::string notice;  ///< The reason why a configured helper failed; otherwise empty.
};

/// Returns the credentials of a registry, named as by registry_of(); a helper has ten seconds.
/// Never throws: if credentials are not available, `notice` has the reason.
async::Task<RegistryAuth> registry_auth(std::string registry);

}  // namespace pipeline::docker

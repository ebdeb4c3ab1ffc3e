/// @file
/// Registry credentials stored by `docker login`: credHelpers, credsStore and auths of
/// ~/.docker/config.json (DOCKER_CONFIG).
#pragma once

#include <string>

#include "async/task.hpp"

namespace pipeline::docker {

/// The credentials of a registry: either an identity token, or a registry token, or a user with a
/// password, or nothing.
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
  std::string notice;  ///< Why docker's configuration or a configured helper gave no credentials.
};

/// Returns the credentials of a registry. Waits ten seconds at most for a credential helper. Never
/// throws: if credentials are not available, `notice` has the reason.
/// @param registry as registry_of() returns it
async::Task<RegistryAuth> registry_auth(std::string registry);

}  // namespace pipeline::docker

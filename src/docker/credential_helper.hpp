/// @file
/// Runs programs that store registry credentials: `docker-credential-NAME get`
/// (github.com/docker/docker-credential-helpers).
#pragma once

#include <chrono>
#include <string>

#include "async/task.hpp"

namespace pipeline::docker {

struct HelperAnswer {
  std::string username, secret;  ///< Both empty if the helper has no credentials for this server.
  std::string failure;           ///< Why the helper gave no answer; empty on success.
};

/// Asks the helper called `name` for the credentials of `server`.
async::Task<HelperAnswer> ask_credential_helper(std::string name, std::string server,
                                                std::chrono::milliseconds timeout);

}  // namespace pipeline::docker

/// @file
/// The time for which a server may be silent before the exchange with it is repeated.
#pragma once

#include <chrono>

namespace pipeline::net {

/// Returns the limit for the API server and the bucket: PIPE_SERVER_TIMEOUT (`30s`, `5m`), or a
/// minute. Throws EnvironmentError if the variable is not a duration of at least a second.
std::chrono::seconds max_silence();

}  // namespace pipeline::net

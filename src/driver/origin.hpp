/// @file
/// The origin of a reused result, for messages.
#pragma once

#include <string>

namespace pipeline::driver {

/// Returns true for a result of another machine, downloaded from the remote cache.
inline bool is_from_remote_cache(const std::string& reused_from) {
  return reused_from.find("://") != std::string::npos;
}

/// Returns `run 7f3a`, or `s3://team/pipe, run 7f3a`.
inline std::string origin_of(const std::string& reused_from) {
  return is_from_remote_cache(reused_from) ? reused_from : "run " + reused_from;
}

}  // namespace pipeline::driver

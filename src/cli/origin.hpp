/// @file
/// Where a reused result is from, for people.
#pragma once

#include <string>

namespace pipeline::cli {

/// Whether another machine has made it, and this one has it from an artifact store.
inline bool is_from_elsewhere(const std::string& reused_from) {
  return reused_from.find("://") != std::string::npos;
}

/// `run 7f3a`, or `s3://team/pipe, run 7f3a`.
inline std::string origin_of(const std::string& reused_from) {
  return is_from_elsewhere(reused_from) ? reused_from : "run " + reused_from;
}

}  // namespace pipeline::cli

/// @file
/// The text of pipeline.lock: YAML, one line a package, so that git merges it line by line. A YAML
/// emitter is not used, because line breaks and quotes depend on its version, and equal
/// environments must have equal texts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockfile/locked_data.hpp"
#include "lockfile/locked_environment.hpp"

namespace pipeline::lockfile {

struct LockContent {
  std::vector<LockedEnvironment> environments;
  std::vector<LockedData> data;
};

/// Returns the content of a lock file's text. Throws InputError with all errors, or only with the
/// conflict for text with git's conflict markers.
/// @param file for messages
LockContent parse(std::string_view text, const std::string& file);

/// Returns the text of a lock file, sorted: equal contents give equal texts.
std::string to_text(LockContent content);

}  // namespace pipeline::lockfile

/// @file
/// The text of pipeline.lock: YAML, one line a package, so that git merges it line by line. It is
/// written here and not by an emitter of YAML, which decides on its own where lines break and what
/// is quoted, and changes that with its version: equal environments have to give equal texts.
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

/// Returns the content of a lock file's text. Throws InputError with everything that is wrong
/// in it, for text with conflict markers of git with that alone.
/// @param file for messages
LockContent parse(std::string_view text, const std::string& file);

/// Returns the text of a lock file, sorted: equal contents give equal texts.
std::string to_text(LockContent content);

}  // namespace pipeline::lockfile

/// @file
/// Records when steps of this user last used an image, because engines do not record that.
#pragma once

#include <cstdint>
#include <string>

namespace pipeline::orchestrators::containers {

/// Records that a step uses the image now; a failure is ignored.
/// @param id `sha256:...`
void note_use(const std::string& id);

/// Returns the time of the last use in seconds since 1970; 0 if none is recorded.
std::int64_t last_use(const std::string& id);

/// Removes the record of an image that no longer exists.
void forget_use(const std::string& id);

}  // namespace pipeline::orchestrators::containers

/// @file
/// The user's folder for what runs share: virtual environments, records of used images.
#pragma once

#include <filesystem>

namespace pipeline::orchestrators {

/// Returns `$PIPE_CACHE_DIR`, else `$XDG_CACHE_HOME/pipe`, else `~/.cache/pipe`; without HOME, as
/// in a service, a folder below the one for temporary files. Throws EnvironmentError if that one
/// may be another user's.
std::filesystem::path cache_folder();

}  // namespace pipeline::orchestrators

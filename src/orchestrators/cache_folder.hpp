/// @file
/// The user's folder for what runs share: virtual environments, records of used images.
#pragma once

#include <filesystem>

namespace pipeline::orchestrators {

/// Returns `$PIPE_CACHE_DIR`, else `$XDG_CACHE_HOME/pipe`, else `~/.cache/pipe`; without HOME, as
/// in a service, `pipe-cache-UID` in the folder for temporary files. Throws EnvironmentError if
/// another user owns that folder or may write to it.
std::filesystem::path cache_folder();

}  // namespace pipeline::orchestrators

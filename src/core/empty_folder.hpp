/// @file
/// Empties folders so that they can be reused instead of being removed and created again.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <span>
#include <string>

namespace pipeline::core {

/// Removes the files in a folder that this program created with `mode`, which may have been changed
/// to 0555. Returns false if the folder cannot be reused as a new one, because it has another mode
/// or owner by now, or an entry that cannot be removed, such as a folder that is not among `kept`.
/// @param kept names of entries that stay
bool empty_folder(const std::filesystem::path& folder, mode_t mode,
                  std::span<const std::string> kept = {});

}  // namespace pipeline::core

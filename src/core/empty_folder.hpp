/// @file
/// Folders that serve again instead of being removed and made anew.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <span>
#include <string>

namespace pipeline::core {

/// Removes the files in a folder that was made here with `mode`, or with 0555.
/// Returns false if the folder cannot serve again as a new one: it has another mode or owner by
/// now, or there is a folder in it that is not among `kept`.
bool empty_folder(const std::filesystem::path& folder, mode_t mode,
                  std::span<const std::string> kept = {});

}  // namespace pipeline::core

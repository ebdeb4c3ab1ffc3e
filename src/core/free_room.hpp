/// @file
/// The room on a disk that may be filled with what others send.
#pragma once

#include <cstdint>
#include <filesystem>

namespace pipeline::core {

/// Returns the bytes that may be written below the folder: a reserve stays free for databases, logs
/// and other programs. All there are if the file system cannot tell.
std::uint64_t free_room(const std::filesystem::path& folder);

}  // namespace pipeline::core

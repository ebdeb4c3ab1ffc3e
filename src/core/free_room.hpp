/// @file
/// The space on a disk that may be filled with downloads.
#pragma once

#include <cstdint>
#include <filesystem>

namespace pipeline::core {

/// Returns the bytes that may be written below the folder: the free space without a reserve of at
/// most 1 GiB for databases, logs and other programs. Returns the largest number if the file system
/// does not report its free space.
std::uint64_t free_room(const std::filesystem::path& folder);

}  // namespace pipeline::core

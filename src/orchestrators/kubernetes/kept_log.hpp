/// @file
/// The agent's copy of a step's log, in a folder that the driver sees.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace pipeline::orchestrators::kubernetes {

/// Returns a part of the copy in the attempt's scratch folder; an empty text if the driver does not
/// see the pod's files. Follows no links, because the step could have put one there.
/// @param offset in bytes
std::string read_kept_log(const std::filesystem::path& scratch, std::uint64_t offset,
                          std::size_t size);

}  // namespace pipeline::orchestrators::kubernetes

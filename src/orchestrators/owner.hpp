/// @file
/// Whose containers and Jobs are whose.
#pragma once

#include <filesystem>
#include <string>

namespace pipeline::orchestrators {

/// Tells what this user runs for this state folder from what others do in the same place, which may
/// be another machine's too: 16 hexadecimal digits.
std::string owner_of(const std::filesystem::path& state);

}  // namespace pipeline::orchestrators

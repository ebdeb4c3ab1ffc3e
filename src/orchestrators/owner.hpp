/// @file
/// The owner of containers and Jobs, and the name of this machine.
#pragma once

#include <filesystem>
#include <string>

namespace pipeline::orchestrators {

/// Returns an identifier of this user and state folder, 16 hexadecimal digits, which separates
/// their containers and Jobs from those of others on the same engine or cluster.
std::string owner_of(const std::filesystem::path& state);

/// Returns the name of this machine; empty if it has none.
std::string machine_name();

}  // namespace pipeline::orchestrators

/// @file
/// Folders of the state that other users of the machine must not enter.
#pragma once

#include <filesystem>

namespace pipeline::store {

/// Takes all rights to the folder from other users: a step may leave anything in it, also programs
/// that would run with its user's rights. A group whose members may write, as where users share a
/// state folder, keeps its rights. On a network file system nothing is changed, because there an
/// engine itself may have only the rights of another user (root_squash).
void keep_from_others(const std::filesystem::path& folder);

}  // namespace pipeline::store

/// @file
/// The invoking user's environment variables and uid:gid.
#pragma once

#include <string>

namespace pipeline::core {

/// Value of an environment variable; empty if unset.
std::string variable(const std::string& name);

/// Returns `UID:GID` of the user, in the form that container engines and clusters accept.
std::string user_and_group();

}  // namespace pipeline::core

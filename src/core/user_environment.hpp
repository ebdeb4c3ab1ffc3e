/// @file
/// Who has called: variables and user.
#pragma once

#include <string>

namespace pipeline::core {

/// Of the caller's environment; empty if it is not set.
std::string variable(const std::string& name);

/// `UID:GID`, as container engines and clusters are told whose files are to be made.
std::string user_and_group();

}  // namespace pipeline::core

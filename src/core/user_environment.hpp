/// @file
/// The invoking user's environment variables and uid:gid.
#pragma once

#include <optional>
#include <string>

#include "core/quantity.hpp"

namespace pipeline::core {

/// Returns the value of an environment variable; empty if unset.
std::string variable(const std::string& name);

/// Returns the duration that an environment variable has (`30s`, `5m`); nothing if it is unset or
/// empty. Throws EnvironmentError for any other text, and for a duration below `least`.
/// @param kind the expected duration, for the message, such as `duration of a second or more`
std::optional<Duration> duration_of_variable(const char* name, Duration least,
                                             const std::string& kind = "duration");

/// Returns `UID:GID` of the user, in the form that container engines and clusters accept.
std::string user_and_group();

}  // namespace pipeline::core

/// @file
/// The profile in which a command or a C++ program works, applied to its options.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "driver/workspace_options.hpp"

namespace pipeline::driver {

struct ProfileUse {
  std::filesystem::path folder;  ///< The pipeline's folder.
  /// Returns true for an option that was given, such as `jobs`; a profile does not change it.
  std::function<bool(const std::string& option)> is_given;
  /// Whether a profile that $PIPE_PROFILE names and the folder lacks is ignored instead of an
  /// error: the variable may be meant for another folder.
  bool ignores_unknown = false;
  /// Called if a file of profiles cannot be read, but no profile was asked for; no profile applies
  /// then. If this function is empty, such a file is an InputError.
  std::function<void(const std::string& problem)> on_unreadable = {};
};

/// Sets the options that the profile sets and that were not given. The profile is
/// `options.profile`, else $PIPE_PROFILE, else `default` if there is one. Throws InputError for an
/// unknown profile.
void use_profile(WorkspaceOptions& options, const ProfileUse& use);

}  // namespace pipeline::driver

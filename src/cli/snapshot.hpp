/// @file
/// The files that a run is made of, put where whoever drives it elsewhere sees them.
#pragma once

#include <filesystem>

#include "cli/session.hpp"

namespace pipeline::cli {

/// Copies what the pipeline was read from, the profile, and the steps' code into a new folder, as
/// they lie to one another.
/// @return the pipeline's file in there
std::filesystem::path keep_files(Session& session, const std::filesystem::path& folder);

}  // namespace pipeline::cli

/// @file
/// The bucket of a run as its driver in a cluster reaches it: told in variables of its pod, since
/// that sees no file of ours.
#pragma once

#include <filesystem>
#include <optional>

#include <pipeline/settings.hpp>

#include "detached/driver_context.hpp"
#include "s3/artifacts.hpp"

namespace pipeline::detached {

/// Where the driver's pod keeps its state.
inline constexpr const char* state_of_driver = "/var/lib/pipe";

/// The settings as they are good there.
settings::ArtifactStoreSettings bucket_of_driver(s3::Artifacts& here);
/// What says so to the driver, keys included: never to be shown. Notes on what the user should know
/// are told.
StringMap variables_of_bucket(DriverContext context, s3::Artifacts& here);
/// In the driver: what it was told. Nothing if its state is shared. Makes the file that it names in
/// `state`.
std::optional<settings::ArtifactStoreSettings> bucket_from_environment(
    const std::filesystem::path& state);

}  // namespace pipeline::detached

/// @file
/// Passes a run's remote store to its driver in the cluster through variables of its pod, because
/// the pod sees no file of this machine.
#pragma once

#include <filesystem>
#include <optional>

#include <pipeline/settings.hpp>

#include "blobs/remote_artifacts.hpp"
#include "remote_driver/driver_context.hpp"

namespace pipeline::remote_driver {

/// The folder in which the driver's pod keeps its state.
inline constexpr const char* state_of_driver = "/var/lib/pipe";

/// Name of the variable with what RunReplica::upload_all() has returned.
inline constexpr const char* files_variable = "PIPE_DRIVER_FILES";

/// Returns the settings in the form that is valid in the pod. @param store has PodAccess
settings::RemoteStoreSettings store_settings_of_driver(blobs::BlobStore& store);
/// Returns the driver's variables, with keys that must not be shown. Reports notes to the user.
StringMap store_variables_of_driver(DriverContext context, blobs::BlobStore& store);
/// In the driver: reads the settings from these variables. Returns nothing if its state folder is
/// shared. Writes the CA file that they contain into `state`.
std::optional<settings::RemoteStoreSettings> store_from_environment(
    const std::filesystem::path& state);

}  // namespace pipeline::remote_driver

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

/// Name of the variable with the key that RunReplica::upload_all() has returned.
inline constexpr const char* files_variable = "PIPE_DRIVER_FILES";

/// Returns the settings in the form that is valid in the pod. @param store has PodAccess
settings::RemoteStoreSettings store_settings_of_driver(blobs::BlobStore& store);
/// Returns the variables of the driver's pod, which contain access keys and must not be shown.
/// Shows a note to the user if the keys expire.
StringMap store_variables_of_driver(DriverContext context, blobs::BlobStore& store);
/// Returns the settings of the remote store from these variables, in the driver; nothing if the
/// driver's state folder is shared. Writes the CA certificates of the variables into `state`.
std::optional<settings::RemoteStoreSettings> store_from_environment(
    const std::filesystem::path& state);

}  // namespace pipeline::remote_driver

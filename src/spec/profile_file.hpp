/// @file
/// Profiles (ZenML's stacks): named sets of orchestrator, cluster, registry and settings, so that
/// one pipeline file runs in several environments.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <pipeline/spec.hpp>

#include "orchestrators/catalog/catalog.hpp"
#include "settings/remote_store.hpp"

namespace pipeline::spec {

/// A profile; `settings` and `connection` hold only the keys that it sets.
struct Profile {
  std::filesystem::path file;  ///< The file that declares the profile.
  std::string description;
  // The following members are empty or 0 if the profile does not set them.
  std::string orchestrator;
  StringMap connection;  ///< Keyed by the names of the orchestrators' fields; see ConnectionField.
  std::filesystem::path state;  ///< The state folder; resolved against the file.
  unsigned jobs = 0;
  std::map<std::string, unsigned> limits;      ///< See PipelineSpec::limits.
  Bytes keep_storage = 0;                      ///< Maximum size of the artifacts.
  settings::RemoteStoreSettings remote_store;  ///< The key `artifact_store`.
  std::vector<NotifySpec> notify;              ///< Webhooks, besides the pipeline's.
  std::string page;   ///< Address at which people reach `pipe serve`, without a path.
  Settings settings;  ///< Defaults of every step; the pipeline's own settings take precedence.

  /// Returns the field `name` of `connection`; empty if the profile does not set it.
  std::string field(const std::string& name) const {
    return orchestrators::connection_field(connection, name);
  }
};
using Profiles = std::map<std::string, Profile>;

/// Parses the text of a file of profiles. Throws InputError with all errors of the text.
/// @param file for messages, and the base of relative paths
Profiles parse_profiles(std::string_view text, const std::filesystem::path& file);

/// Returns the files that may declare profiles: `profiles.yaml` beside the pipeline, then
/// $PIPE_PROFILES, else `pipe/profiles.yaml` in $XDG_CONFIG_HOME or ~/.config.
std::vector<std::filesystem::path> profile_files(const std::filesystem::path& pipeline_folder);

/// Reads the profiles of all profile_files(). If two have the same name, the user's own is used,
/// not the one beside the pipeline. Throws InputError with the errors of a file.
Profiles find_profiles(const std::filesystem::path& pipeline_folder);
/// Returns the profile of this name. Throws InputError for an unknown name, with a similar one.
Profile find_profile(const std::string& name, const std::filesystem::path& pipeline_folder);

/// Adds the profile's webhooks and limits to the pipeline, and merges the profile's settings under
/// those of each step. Returns the changes of settings: `docker.platform is linux/arm64 for train,
/// plot`.
std::vector<std::string> apply(const Profile& profile, PipelineSpec& pipeline);

}  // namespace pipeline::spec

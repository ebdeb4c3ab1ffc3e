/// @file
/// Profiles (ZenML's stacks): named sets of where steps run, and of settings that go with it, so
/// that the pipeline file need not change with the place.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <pipeline/spec.hpp>

#include "settings/artifact_store.hpp"

namespace pipeline::spec {

struct Profile {
  std::filesystem::path file;  ///< That says so.
  std::string description;
  std::string orchestrator;  ///< This and what follows: empty or 0 where the profile says nothing.
  std::string context, name_space;
  std::filesystem::path state;  ///< Where runs and artifacts are kept; relative to the file.
  unsigned jobs = 0;
  std::string service_account;  ///< Of a driver in the cluster.
  std::string claim;            ///< PersistentVolumeClaim, through which pods see `state` ...
  std::filesystem::path
      claim_path;  ///< ... and where this machine sees what is in it; relative to the file.
  settings::ArtifactStoreSettings artifact_store;
  Settings settings;  ///< Defaults of every step: what the pipeline says wins.
};
using Profiles = std::map<std::string, Profile>;

/// Throws InputError with all that is wrong.
Profiles parse_profiles(std::string_view text, const std::filesystem::path& file);

/// Where profiles are looked for: `profiles.yaml` beside the pipeline, then $PIPE_PROFILES, else
/// `pipe/profiles.yaml` in $XDG_CONFIG_HOME or ~/.config.
std::vector<std::filesystem::path> profile_files(const std::filesystem::path& pipeline_folder);

/// Of all these files; where two have a profile of one name, that beside the pipeline is the one.
/// Throws InputError.
Profiles find_profiles(const std::filesystem::path& pipeline_folder);
/// Throws InputError for an unknown name, with the likely one.
Profile find_profile(const std::string& name, const std::filesystem::path& pipeline_folder);

/// Puts the profile's settings under those of each step, and says what that changed:
/// `docker.platform is linux/arm64 for train, plot`.
std::vector<std::string> apply(const Profile& profile, PipelineSpec& pipeline);

}  // namespace pipeline::spec

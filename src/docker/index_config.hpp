/// @file
/// This machine's configuration of package indexes: proxies, pip's and uv's configuration, the CA
/// bundle. A build gets it without keeping it in the image.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pipeline/settings.hpp>

#include "docker/image_plan.hpp"

namespace pipeline::docker {

/// The configuration, as a build gets it.
struct IndexConfig {
  StringMap variables;  ///< Variables for the build's scripts; values may hold credentials.
  /// PEM bundle; unset if no variable of this machine names one, and the machine has no CAs of its
  /// own.
  std::optional<std::filesystem::path> ca;
  StringMap proxies;  ///< http_proxy and similar variables, as docker's predefined build arguments.
};

/// The sources of the configuration; tests replace them.
struct IndexSources {
  /// Returns the value of an environment variable; nothing if it is unset or empty.
  std::function<std::optional<std::string>(const std::string&)> variable;
  std::vector<std::string> variable_names;       ///< Names of all environment variables.
  std::vector<std::filesystem::path> pip_files;  ///< Later files take precedence.
  std::filesystem::path system_bundle = "/etc/ssl/certs/ca-certificates.crt";
  std::filesystem::path own_certificates = "/usr/local/share/ca-certificates";
};
/// Returns the sources of this machine: its environment variables, pip's files, the CA bundles.
IndexSources this_machine();

IndexConfig read_index_config(const IndexSources& sources);

/// Returns the configuration of this machine for a build that starts from the images. Any program
/// in a build can read the logins of indexes, so they are left out unless all images are trusted:
/// an image is trusted if its name has no `/` (Docker's official images, and this machine's own),
/// or matches a pattern in PIPE_INDEX_PARENTS.
/// @param notices receives a text if logins were left out
IndexConfig config_for_build(const IndexSources& sources, const std::vector<std::string>& images,
                             std::vector<std::string>& notices);

/// Returns the files of a context's folder `host/`: `env.sh` and, if there is a bundle, `ca.crt`.
std::vector<ContextFile> host_files(const IndexConfig& config);

}  // namespace pipeline::docker

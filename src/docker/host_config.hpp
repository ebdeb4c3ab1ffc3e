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

struct HostConfig {
  StringMap variables;  ///< Variables for the build's scripts; values may hold credentials.
  std::optional<std::filesystem::path>
      ca;             ///< PEM bundle, if this machine names one or has CAs of its own.
  StringMap proxies;  ///< http_proxy and similar variables, as docker's predefined build arguments.
};

/// The sources of the configuration; tests replace them.
struct HostSources {
  std::function<std::optional<std::string>(const std::string&)>
      variable;                                  ///< Returns the value of an environment variable.
  std::vector<std::string> variable_names;       ///< Names of all environment variables.
  std::vector<std::filesystem::path> pip_files;  ///< Later files take precedence.
  std::filesystem::path system_bundle = "/etc/ssl/certs/ca-certificates.crt";
  std::filesystem::path own_certificates = "/usr/local/share/ca-certificates";
};
HostSources this_machine();

HostConfig read_host_config(const HostSources& sources);

/// Returns the configuration of this machine for a build that starts from the images. The logins of
/// indexes, which all that runs in a build can read, are left out unless the user trusts each image
/// with them: one without a `/` in its name (Docker's official ones, this machine's own), or one
/// that a pattern in PIPE_INDEX_PARENTS names.
/// @param notices says that logins were left out
HostConfig config_for_build(const HostSources& sources, const std::vector<std::string>& images,
                            std::vector<std::string>& notices);

/// Returns the `host/` folder of a context: `env.sh` and, if there is a bundle, `ca.crt`.
std::vector<ContextFile> host_files(const HostConfig& config);

/// Returns the keys of pip.conf's sections [global] and [install] under pip's names.
StringMap parse_pip_conf(std::string_view text);

}  // namespace pipeline::docker

/// @file
/// How this machine reaches package indexes: proxies, pip's and uv's configuration, the CA bundle.
/// It reaches a build and stays out of the image.
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
  StringMap variables;  ///< For the build's scripts; values may hold credentials.
  std::optional<std::filesystem::path>
      ca;             ///< PEM bundle, if this machine names one or has CAs of its own.
  StringMap proxies;  ///< http_proxy and its like, as docker's predefined build arguments.
};

/// Where the configuration is looked for; replaced in tests.
struct HostSources {
  std::function<std::optional<std::string>(const std::string&)> variable;  ///< Of the environment.
  std::vector<std::string> variable_names;                                 ///< All of them.
  std::vector<std::filesystem::path> pip_files;                            ///< Later ones win.
  std::filesystem::path system_bundle = "/etc/ssl/certs/ca-certificates.crt";
  std::filesystem::path own_certificates = "/usr/local/share/ca-certificates";
};
HostSources this_machine();

HostConfig read_host_config(const HostSources& sources);

/// The `host/` folder of a context: `env.sh` and, if there is a bundle, `ca.crt`.
std::vector<ContextFile> host_files(const HostConfig& config);

/// The keys of pip.conf's sections [global] and [install], in pip's names.
StringMap parse_pip_conf(std::string_view text);

}  // namespace pipeline::docker

#include <filesystem>

#include "core/bounded_json.hpp"
#include "core/digest.hpp"
#include "core/file.hpp"
#include "core/user_environment.hpp"
#include "docker/config.hpp"
#include "docker/engine_api.hpp"

namespace pipeline::docker {
namespace {

namespace fs = std::filesystem;

constexpr const char* default_socket = "unix:///var/run/docker.sock";

/// Returns the path of the file; empty if there is no such file.
std::string path_if_exists(const fs::path& file) {
  std::error_code error;
  return fs::is_regular_file(file, error) ? file.string() : std::string();
}

net::TlsOptions tls_files(const fs::path& folder) {
  return {.ca_file = path_if_exists(folder / "ca.pem"),
          .cert_file = path_if_exists(folder / "cert.pem"),
          .key_file = path_if_exists(folder / "key.pem")};
}

/// Completes `host:2376` to `tcp://host:2376` and adds a missing port, as docker's own client does.
std::string complete_url(std::string url, bool use_tls) {
  if (url.find("://") == url.npos) url = (url.starts_with('/') ? "unix://" : "tcp://") + url;
  if (!url.starts_with("tcp://")) return url;
  while (url.ends_with('/')) url.pop_back();
  const auto host = std::string_view(url).substr(6);
  const auto after_address = host.starts_with('[') ? host.find(']') : 0;
  if (after_address == host.npos || host.find(':', after_address) == host.npos)
    url += use_tls ? ":2376" : ":2375";
  return url;
}

/// Returns the endpoint of a URL, with the TLS that the variables DOCKER_TLS_VERIFY, DOCKER_TLS and
/// DOCKER_CERT_PATH configure.
Endpoint from_environment(const std::string& host) {
  Endpoint endpoint;
  endpoint.origin = "DOCKER_HOST";
  const bool verify = !core::variable("DOCKER_TLS_VERIFY").empty();
  endpoint.use_tls = verify || !core::variable("DOCKER_TLS").empty();
  if (endpoint.use_tls) {
    const auto certificates = core::variable("DOCKER_CERT_PATH");
    endpoint.certificates = certificates.empty() ? config_folder().string() : certificates;
    endpoint.tls = tls_files(endpoint.certificates);
    endpoint.tls.verify = verify;
  }
  endpoint.url = complete_url(host, endpoint.use_tls);
  return endpoint;
}

/// Returns the endpoint of a docker context. @param named_by where the context is named, for errors
Endpoint from_context(const std::string& name, const std::string& named_by) {
  const auto id = core::sha256(name).hex();
  const auto file = config_folder() / "contexts" / "meta" / id / "meta.json";
  std::error_code error;
  if (!fs::exists(file, error))
    throw core::EnvironmentError(
        "the docker context '" + name + "', named by " + named_by +
            ", does not exist: there is no " + file.string(),
        {"`docker context ls` lists those that do, `docker context use NAME` chooses one"});
  const auto meta = core::parse_json(core::read_file(file));
  const auto host = nlohmann::json::json_pointer("/Endpoints/docker/Host");
  if (meta.is_discarded() || !meta.contains(host) || !meta[host].is_string())
    throw core::EnvironmentError("the docker context '" + name + "' names no endpoint: " +
                                 file.string() + " has no string at /Endpoints/docker/Host");
  Endpoint endpoint;
  endpoint.origin = "docker context '" + name + "'";
  const auto certificates = config_folder() / "contexts" / "tls" / id / "docker";
  endpoint.use_tls = fs::is_directory(certificates, error);
  if (endpoint.use_tls) endpoint.tls = tls_files(endpoint.certificates = certificates.string());
  const auto skip = nlohmann::json::json_pointer("/Endpoints/docker/SkipTLSVerify");
  endpoint.tls.verify = !(meta.contains(skip) && meta[skip] == true);
  endpoint.url = complete_url(meta[host].get<std::string>(), endpoint.use_tls);
  return endpoint;
}

}  // namespace

std::filesystem::path config_folder() {
  if (auto folder = core::variable("DOCKER_CONFIG"); !folder.empty()) return folder;
  return fs::path(core::variable("HOME")) / ".docker";
}

nlohmann::json config_file() {
  const auto file = config_folder() / "config.json";
  std::error_code error;
  if (!fs::exists(file, error)) return nlohmann::json::object();
  auto config = core::parse_json(core::read_file(file));
  if (!config.is_object())
    throw core::EnvironmentError(file.string() + " is not a JSON object",
                                 {"fix it, or move it away and run `docker login` again"});
  return config;
}

Endpoint find_endpoint() {
  if (auto host = core::variable("DOCKER_HOST"); !host.empty()) return from_environment(host);
  std::string context = core::variable("DOCKER_CONTEXT"), named_by = "DOCKER_CONTEXT";
  if (context.empty()) {
    const auto config = config_file();
    if (auto current = config.find("currentContext");
        current != config.end() && current->is_string())
      context = current->get<std::string>();
    named_by = (config_folder() / "config.json").string();
  }
  if (!context.empty() && context != "default") return from_context(context, named_by);
  Endpoint endpoint;
  endpoint.url = default_socket;
  endpoint.origin = "default";
  return endpoint;
}

Endpoint endpoint_at(const std::string& url, const std::string& certificates) {
  auto endpoint = from_environment(url);
  endpoint.origin = "the profile's engines";
  if (certificates.empty()) return endpoint;
  endpoint.use_tls = true;
  endpoint.tls = tls_files(endpoint.certificates = certificates);
  endpoint.url = complete_url(url, true);
  return endpoint;
}

}  // namespace pipeline::docker

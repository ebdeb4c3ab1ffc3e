#include "docker/unreachable.hpp"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "core/text.hpp"

namespace pipeline::docker {
namespace {

/// A cause and its advice. In the advice, {host} stands for the endpoint's host, and {certificates}
/// for the folder of its TLS files.
struct Cause {
  std::string_view text;  ///< Part of the transport's message.
  std::string_view advice;
};

/// The first match is used: errors on the remote machine come before errors of ssh itself.
constexpr std::array ssh_causes{
    Cause{"dial-stdio' is not",
          "docker over there is older than 18.09, which does not know `docker system dial-stdio`: "
          "update it"},
    Cause{
        "unknown command",
        "docker over there does not know `docker system dial-stdio`: update it to 18.09 or newer"},
    Cause{"docker: not found",
          "docker is not installed over there, or not on the PATH of a login without terminal: see "
          "`ssh {host} docker version`"},
    Cause{"command not found",
          "docker is not installed over there, or not on the PATH of a login without terminal: see "
          "`ssh {host} docker version`"},
    Cause{"No such file or directory: docker",
          "docker is not installed over there: see `ssh {host} docker version`"},
    Cause{"permission denied while trying to connect",
          "your user over there may not use the engine: `sudo usermod -aG docker USER` on that "
          "machine, then log in again"},
    Cause{"connect: permission denied",
          "your user over there may not use the engine: `sudo usermod -aG docker USER` on that "
          "machine, then log in again"},
    Cause{"Cannot connect to the Docker daemon",
          "ssh came through, but no engine runs over there: `ssh {host} sudo systemctl start "
          "docker`"},
    Cause{"dial unix",
          "ssh came through, but no engine runs over there: `ssh {host} sudo systemctl start "
          "docker`"},
    Cause{"HOST IDENTIFICATION HAS CHANGED",
          "the machine shows another key than the one you know: find out why before you continue; "
          "`ssh-keygen -R HOST` forgets the old one"},
    Cause{"Host key verification failed",
          "you have not met this machine yet: `ssh {host}` once by hand, check its key, and "
          "confirm it"},
    Cause{
        "Permission denied (",
        "the machine accepts none of your keys: `ssh-copy-id {host}` gives it yours; a key with a "
        "passphrase must be in the agent (`ssh-add`), "
        "because pipe asks for nothing"},
    Cause{"Too many authentication failures",
          "the agent offers too many keys: name the right one in ~/.ssh/config (IdentityFile, "
          "IdentitiesOnly yes)"},
    Cause{"Could not resolve hostname",
          "no such host: check its name, or its entry in ~/.ssh/config"},
    Cause{"Connection refused",
          "no ssh server listens there: check host and port, and that sshd runs"},
    Cause{"timed out", "nothing answers there: check the host, its firewall, and a VPN"},
    Cause{"No route to host", "nothing answers there: check the host, its firewall, and a VPN"},
    Cause{"Network is unreachable",
          "there is no way to that network: check this machine's network, and a VPN"},
    Cause{"exchange_identification",
          "its ssh server turns connections away: raise MaxStartups in its sshd_config, share one "
          "connection (ControlMaster in ~/.ssh/config), or "
          "run fewer "
          "steps at once (`--jobs`)"},
    Cause{"", "see what `ssh {host} docker version` says"},
};

constexpr std::array tls_causes{
    Cause{"self-signed certificate",
          "the engine's certificate is signed by a CA that you do not know: {certificates}/ca.pem "
          "must be that CA's certificate"},
    Cause{"self signed certificate",
          "the engine's certificate is signed by a CA that you do not know: {certificates}/ca.pem "
          "must be that CA's certificate"},
    Cause{"unable to get local issuer certificate",
          "the engine's certificate is signed by a CA that you do not know: {certificates}/ca.pem "
          "must be that CA's certificate"},
    Cause{"certificate signature failure",
          "the engine's certificate is signed by another CA of that name: {certificates}/ca.pem is "
          "not the right one"},
    Cause{"certificate has expired",
          "the engine's certificate has expired, or this machine's clock is wrong (`date`): have "
          "it renewed"},
    Cause{"certificate is not yet valid",
          "the engine's certificate is not yet valid, or this machine's clock is wrong (`date`)"},
    Cause{"subject name",
          "the certificate is for another name: name the host as the certificate does, or have "
          "{host} put into it (subjectAltName)"},
    Cause{"certificate required",
          "the engine requires a client certificate: cert.pem and key.pem in {certificates}"},
    Cause{"unknown ca",
          "the engine does not know the CA of your certificate {certificates}/cert.pem: have one "
          "made by the engine's CA"},
    Cause{"bad certificate",
          "the engine requires a client certificate, or does not accept "
          "{certificates}/cert.pem: have one made by the engine's CA, for clients"},
    Cause{"alert certificate expired",
          "your certificate {certificates}/cert.pem has expired: have it renewed"},
    Cause{"handshake failure",
          "the engine does not agree to TLS with you: it may want a certificate of yours, cert.pem "
          "and key.pem in {certificates}"},
    Cause{"unable to set private key",
          "{certificates}/key.pem is not a key, or not that of cert.pem"},
    Cause{"could not load PEM", "{certificates}/cert.pem is not a certificate that can be read"},
    Cause{"error adding trust anchors",
          "{certificates}/ca.pem is not a certificate that can be read"},
    Cause{"error setting certificate",
          "{certificates}/ca.pem or cert.pem is not a certificate that can be read"},
    Cause{"wrong version number",
          "the server there does not use TLS: without it, unset DOCKER_TLS_VERIFY; with it, the "
          "port is usually 2376"},
    Cause{"packet length too long",
          "the server there does not use TLS: without it, unset DOCKER_TLS_VERIFY; with it, the "
          "port is usually 2376"},
};

constexpr std::array network_causes{
    Cause{"HTTP request to an HTTPS server",
          "this engine requires TLS: `export DOCKER_TLS_VERIFY=1 DOCKER_CERT_PATH=FOLDER`, where "
          "FOLDER has ca.pem, cert.pem "
          "and key.pem"},
    Cause{"Could not resolve host", "no such host: check its name"},
    Cause{"Connection refused",
          "nothing listens there: check host and port (2376 with TLS, 2375 without), and that the "
          "engine runs and listens on TCP"},
    Cause{"timed out", "nothing answers there: check the host, its firewall, and a VPN"},
    Cause{"Timeout", "nothing answers there: check the host, its firewall, and a VPN"},
    Cause{"No route to host", "nothing answers there: check the host, its firewall, and a VPN"},
    Cause{"Failed to connect",
          "nothing listens there: check host and port (2376 with TLS, 2375 without), and that the "
          "engine runs and listens on TCP"},
    Cause{"", "check that an engine listens there, and that this machine may reach it"},
};

/// Returns the advice of the first cause in the message; empty if there is none.
std::string_view find_advice(std::string_view why, std::span<const Cause> causes) {
  for (const auto& [text, advice] : causes)
    if (why.find(text) != why.npos) return advice;
  return {};
}

/// Returns `-p 22 me@host`, as ssh's arguments, for `ssh://me@host:22/x`; `host` for
/// `tcp://host:2376`.
std::string host_arguments(const std::string& url) {
  auto host = url.substr(url.find("://") + 3);
  host = host.substr(0, host.find('/'));
  const auto at = host.find('@');
  const auto bracket = host.find(']');
  const auto colon = host.find(':', bracket != host.npos ? bracket : at == host.npos ? 0 : at);
  if (colon == host.npos) return host;
  const auto port = host.substr(colon + 1);
  host.resize(colon);
  return url.starts_with("ssh://") ? "-p " + port + " " + host : host;
}

std::string filled(std::string_view advice, const Endpoint& endpoint) {
  auto text = core::replaced(std::string(advice), "{host}", host_arguments(endpoint.url));
  return core::replaced(std::move(text), "{certificates}", endpoint.certificates);
}

/// Returns the TLS files that do not exist, such as `ca.pem and no key.pem`.
std::string missing_files(const Endpoint& endpoint) {
  std::string missing;
  for (const auto& [name, file] :
       {std::pair("ca.pem", &endpoint.tls.ca_file), std::pair("cert.pem", &endpoint.tls.cert_file),
        std::pair("key.pem", &endpoint.tls.key_file)})
    if (file->empty()) missing += (missing.empty() ? "" : " and no ") + std::string(name);
  return missing;
}

/// Returns the socket of a user's or root's Podman, an engine that may be running when docker's
/// default socket does not exist.
std::string podman_socket() {
  std::vector<std::string> candidates{"/run/podman/podman.sock"};
  if (const char* runtime = std::getenv("XDG_RUNTIME_DIR"))
    candidates.insert(candidates.begin(), std::string(runtime) + "/podman/podman.sock");
  std::error_code error;
  for (const auto& candidate : candidates)
    if (std::filesystem::exists(candidate, error)) return candidate;
  return {};
}

/// Returns the last line, in which ssh prints its reason.
std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of(" \t\r\n");
  if (end == text.npos) return text;
  const auto begin = text.find_last_of("\r\n", end);
  return text.substr(begin == text.npos ? 0 : begin + 1,
                     end - (begin == text.npos ? 0 : begin + 1) + 1);
}

}  // namespace

UnreachableEngine unreachable(const Endpoint& endpoint, const std::string& why) {
  const auto has_scheme = [&](std::string_view prefix) { return endpoint.url.starts_with(prefix); };
  std::vector<std::string> advice;
  std::string reason = why;
  if (has_scheme("ssh://")) {
    const auto line = last_line(why);
    reason = line.starts_with("ssh: ") ? line : "ssh: " + line;
    advice.emplace_back(filled(find_advice(why, ssh_causes), endpoint));
  } else if (has_scheme("unix://")) {
    if (why.find("Permission denied") != why.npos) {
      advice.emplace_back(
          "your user may not use the socket: `sudo usermod -aG docker $USER`, then log in again");
    } else {
      advice.emplace_back(
          "start it with `sudo systemctl start docker`, or install it with `sudo apt-get install "
          "docker.io`");
      if (const auto podman = podman_socket(); !podman.empty())
        advice.emplace_back("there is a Podman: `export DOCKER_HOST=unix://" + podman + "`");
    }
  } else {
    const auto found = endpoint.use_tls ? find_advice(why, tls_causes) : std::string_view();
    advice.emplace_back(filled(found.empty() ? find_advice(why, network_causes) : found, endpoint));
    if (const auto missing = missing_files(endpoint);
        found.find("{certificates}") != found.npos && !missing.empty())
      advice.emplace_back("there is no " + missing + " in " + endpoint.certificates +
                          ", the folder that DOCKER_CERT_PATH or the context names");
  }
  if (endpoint.origin != "default")
    advice.emplace_back("the endpoint comes from " + endpoint.origin +
                        ": change that if it is the wrong one");
  advice.emplace_back("or run the steps as plain processes: `--orchestrator local`");
  return UnreachableEngine(
      "no Docker Engine answers at " + endpoint.url + " (" + endpoint.origin + "): " + reason,
      std::move(advice));
}

}  // namespace pipeline::docker

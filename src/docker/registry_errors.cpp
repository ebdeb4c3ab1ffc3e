#include "docker/registry_errors.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "core/text.hpp"
#include "docker/reference.hpp"

namespace pipeline::docker {
namespace {

struct RegistryHint {
  std::string_view text;    ///< Lower case.
  std::string_view advice;  ///< REGISTRY is replaced by the registry's host.
};

constexpr std::string_view wrong_platform =
    "the image is not made for this platform: set `platform`, or take another parent image";
constexpr std::string_view unknown_tag =
    "the repository is there but has no such tag: check the part after the `:`";
constexpr std::string_view log_in = "the registry requires a login: `docker login REGISTRY`";
constexpr std::string_view timed_out =
    "the engine cannot reach that host in time: check its network and proxy (`docker info`)";
constexpr std::string_view no_route =
    "the engine has no way to that host: check its network, a VPN, and its proxy (`docker info`)";
constexpr std::string_view wrong_name =
    "the registry's certificate is for another name: name the registry as its certificate does, or "
    "have REGISTRY put into it (subjectAltName)";

/// The first match is used: specific texts come before general ones.
constexpr std::array registry_hints{
    RegistryHint{"toomanyrequests",
                 "the registry limits anonymous pulls: `docker login`, wait, or name a mirror in "
                 "the engine's configuration"},
    RegistryHint{"quota",
                 "your quota in the registry is used up: remove images there, or ask for more"},
    RegistryHint{"no matching manifest for", wrong_platform},
    RegistryHint{"no match for platform", wrong_platform},
    RegistryHint{"manifest unknown", unknown_tag},
    RegistryHint{"manifest for", unknown_tag},
    RegistryHint{"name unknown",
                 "the registry has no such repository: check its name; some (Amazon's, Google's) "
                 "want it to be created first"},
    RegistryHint{
        "pull access denied",
        "check the image's name; if it is private, `docker login REGISTRY` with an account "
        "that may read it"},
    RegistryHint{"unauthorized", log_in},
    RegistryHint{"no basic auth credentials", log_in},
    RegistryHint{"authentication required", log_in},
    RegistryHint{"authorization failed", log_in},
    RegistryHint{"requested access to the resource is denied",
                 "this account may not do that there: `docker login REGISTRY` with one that may"},
    RegistryHint{"denied: ",
                 "this account may not do that there: `docker login REGISTRY` with one that may"},
    RegistryHint{"certificate signed by unknown authority",
                 "the engine does not trust the registry's certificate: put its CA at "
                 "/etc/docker/certs.d/REGISTRY/ca.crt on the engine's machine; "
                 "a restart is not needed"},
    RegistryHint{"certificate has expired or is not yet valid",
                 "the registry's certificate has expired, or the clock of the engine's machine is "
                 "wrong (`date`)"},
    RegistryHint{"x509: certificate is valid for", wrong_name},
    RegistryHint{"x509: certificate is not valid for", wrong_name},
    RegistryHint{"x509: cannot validate certificate for", wrong_name},
    RegistryHint{"x509: certificate relies on legacy common name", wrong_name},
    RegistryHint{
        "server gave http response to https client",
        "the registry has no TLS: list it under `insecure-registries` in the engine's daemon.json"},
    RegistryHint{"no such host",
                 "the engine cannot find that host: check the name, and the engine's own network "
                 "and proxy (`docker info`)"},
    RegistryHint{"server misbehaving",
                 "the engine cannot find that host: check the name, and the engine's own network "
                 "and proxy (`docker info`)"},
    RegistryHint{"client.timeout exceeded", timed_out},
    RegistryHint{"i/o timeout", timed_out},
    RegistryHint{"tls handshake timeout", timed_out},
    RegistryHint{"connect: connection refused",
                 "nothing listens there: check host and port, and that the registry runs"},
    RegistryHint{"unexpected http status: 5",
                 "the registry has an internal error: run again later"},
    RegistryHint{"no route to host", no_route},
    RegistryHint{"network is unreachable", no_route},
};

}  // namespace

std::vector<std::string> registry_advice(std::string_view text, std::string_view registry) {
  const auto lowered = core::lower(text);
  for (const auto& [part, advice] : registry_hints)
    if (lowered.find(part) != lowered.npos)
      return {core::replaced(std::string(advice), "REGISTRY", registry)};
  return {};
}

bool is_refusal(std::string_view text) {
  constexpr std::array words{"unauthorized",
                             "no basic auth credentials",
                             "authentication required",
                             "authorization failed",
                             "denied",
                             "forbidden"};
  const auto lowered = core::lower(text);
  const auto has_word = [&](const char* word) { return lowered.find(word) != lowered.npos; };
  return !has_word("quota") && std::ranges::any_of(words, has_word);
}

std::vector<std::string> push_advice(std::string_view text, std::string_view reference,
                                     const std::filesystem::path& config, bool logged_in) {
  const auto registry = registry_of(reference);
  if (!is_refusal(text)) return registry_advice(text, registry);
  if (!logged_in)
    return {"you are not logged in: `docker login " + registry + "` (" + config.string() +
            " has no credentials for it)"};
  return {"the account that " + config.string() + " has for " + registry +
          " is unknown there, or may not push to " + split_reference(reference).first +
          ": `docker login " + registry +
          "` with one that may, or name another `docker.target_repository`"};
}

}  // namespace pipeline::docker

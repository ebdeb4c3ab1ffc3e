#include "orchestrators/kubernetes/pull_advice.hpp"

#include <array>
#include <string_view>

#include "core/text.hpp"
#include "docker/reference.hpp"
#include "docker/registry_errors.hpp"
#include "kubernetes_api/json.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using kubernetes_api::list_at;
using kubernetes_api::text_at;
using nlohmann::json;

struct PullHint {
  std::string_view text;    ///< A part of the message, without a first letter of either case.
  std::string_view advice;  ///< Follows the name of the registry.
};

constexpr std::string_view cannot_reach =
    " cannot be reached from the nodes: check that its name and port mean the same there as here, "
    "and the way between (firewall, proxy)";
constexpr std::string_view not_there =
    " does not have that image: check its name; the next run pushes an image of `pipe` again";
constexpr std::string_view other_kind =
    " has no such image for the node's kind of processor: set `docker.platform`, or have the step "
    "run on other nodes";

/// Messages of containerd, CRI-O and Docker; the first match is used.
constexpr std::array pull_hints{
    PullHint{"x509: certificate signed by unknown authority",
             " has a certificate that the nodes do not trust: the container runtime of each "
             "node has to know its CA (containerd: "
             "/etc/containerd/certs.d/REGISTRY/hosts.toml, Docker: "
             "/etc/docker/certs.d/REGISTRY/ca.crt)"},
    PullHint{"x509: ",
             " has a certificate that does not fit: it has expired, or is for another name"},
    PullHint{
        "server gave HTTP response to HTTPS client",
        " has no TLS, which the nodes demand: configure their container runtime to pull without "
        "TLS"},
    PullHint{"toomanyrequests",
             " limits pulls without a login: name a pull secret, or take the image from elsewhere"},
    PullHint{"no match for platform", other_kind},
    PullHint{"no matching manifest for", other_kind},
    PullHint{"manifest unknown", not_there},
    PullHint{"name unknown", not_there},
    PullHint{": not found", not_there},
    PullHint{"no such host", cannot_reach},
    PullHint{"server misbehaving", cannot_reach},
    PullHint{"imeout", cannot_reach},
    PullHint{"connection refused", cannot_reach},
    PullHint{"no route to host", cannot_reach},
    PullHint{"network is unreachable", cannot_reach},
};

/// Returns the registry and the advice, in which the registry replaces REGISTRY.
std::string advice_on(const std::string& registry, std::string_view advice) {
  return registry + core::replaced(std::string(advice), "REGISTRY", registry);
}

std::string pull_secrets_of(const json& pod) {
  std::string names;
  for (const auto& secret : list_at(pod, "/spec/imagePullSecrets"))
    names += (names.empty() ? "" : ", ") + text_at(secret, "/name");
  return names;
}

/// Returns the command that creates the Secret, with placeholders for what only its owner knows.
std::string make_secret(const json& pod, const std::string& name, const std::string& registry) {
  const auto name_space = text_at(pod, "/metadata/namespace");
  return "`kubectl" + (name_space.empty() ? "" : " -n " + name_space) +
         " create secret docker-registry " + name + " --docker-server=" + registry +
         " --docker-username=USER --docker-password=PASSWORD`";
}

}  // namespace

std::vector<std::string> pull_advice(const json& pod, const std::string& image,
                                     const std::string& messages) {
  const auto registry = docker::registry_of(image);
  if (docker::is_refusal(messages)) {
    const auto secrets = pull_secrets_of(pod);
    if (secrets.empty())
      return {"the nodes have no credentials for " + registry +
                  ", and do not get yours: " + make_secret(pod, "registry", registry),
              "then name the secret under `settings.kubernetes`: `image_pull_secrets: [registry]`"};
    return {"the step's pull secrets (" + secrets + ") do not open " +
            docker::split_reference(image).first + ": name a secret for " + registry +
            ", of an account that may read it: " + make_secret(pod, "NAME", registry)};
  }
  for (const auto& [text, advice] : pull_hints)
    if (messages.find(text) != messages.npos) return {advice_on(registry, advice)};
  return {"check the image's name, and that the nodes may read " + registry};
}

void advise_on_pull(const nlohmann::json& pod, const std::string& unfetched, Failure& failure) {
  if (unfetched.empty()) return;
  auto messages = failure.message;
  for (const auto& line : failure.details) messages += "\n" + line;
  failure.hints = pull_advice(pod, unfetched, messages);
}

}  // namespace pipeline::orchestrators::kubernetes

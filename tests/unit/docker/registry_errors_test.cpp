// The exact messages for an image that cannot be pushed. PIPE_ACCEPT=1 writes
// tests/golden/registry/push.expected again.
#include "docker/registry_errors.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "support/golden.hpp"

namespace pipeline::docker {
namespace {

struct RefusalCase {
  bool logged_in;
  std::string said;  ///< As engines (20.10 to 28), Podman and the registries themselves say it.
};

const std::string get = "Get \"https://registry.example:5000/v2/\": ";

const std::vector<RefusalCase> refusal_cases{
    {false, "no basic auth credentials"},
    {false, "unauthorized: authentication required"},
    {true, "unauthorized: authentication required"},
    {true, "denied: requested access to the resource is denied"},
    {true, "denied: permission_denied: write_package"},
    {true,
     "push access denied, repository does not exist or may require authorization: authorization "
     "failed: no basic auth credentials"},
    {true,
     "unexpected status from HEAD request to "
     "https://registry.example:5000/v2/team/digits/blobs/sha256:00: 403 Forbidden"},
    {true,
     "name unknown: The repository with name 'team/digits' does not exist in the registry with id "
     "'123456789012'"},
    {true, get + "x509: certificate signed by unknown authority"},
    {true,
     get + "tls: failed to verify certificate: x509: certificate signed by unknown authority"},
    {true, get + "x509: certificate is valid for other.example, not registry.example"},
    {true, get + "x509: certificate has expired or is not yet valid: current time "
                 "2026-11-21T08:15:00Z is after 2026-10-01T00:00:00Z"},
    {true, get + "http: server gave HTTP response to HTTPS client"},
    {true, get + "dial tcp 192.0.2.1:5000: connect: connection refused"},
    {true, get + "dial tcp: lookup registry.example on 192.0.2.53:53: no such host"},
    {true, get + "dial tcp 192.0.2.1:5000: i/o timeout"},
    {true, get + "net/http: request canceled while waiting for connection (Client.Timeout exceeded "
                 "while awaiting headers)"},
    {true, get + "dial tcp 192.0.2.1:5000: connect: no route to host"},
    {true, "toomanyrequests: You have reached your pull rate limit"},
    {true,
     "denied: adding 1.2 GiB of storage resource would exceed current storage quota of 1.0 GiB"},
    {true, "received unexpected HTTP status: 503 Service Unavailable"},
};

TEST(RegistryErrors, golden_each_refusal_of_a_push_is_explained) {
  std::string text;
  for (const auto& one : refusal_cases) {
    text += one.said + (one.logged_in ? "" : "   (not logged in)") + "\n";
    for (const auto& hint : push_advice(one.said, "registry.example:5000/team/digits:env-1",
                                        "/home/me/.docker/config.json", one.logged_in))
      text += "  hint: " + hint + "\n";
  }
  test::expect_golden(text, std::filesystem::path(PIPELINE_SOURCE_DIR) / "tests/golden/registry",
                      "push");
}

}  // namespace
}  // namespace pipeline::docker

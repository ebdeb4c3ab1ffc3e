// The exact messages for an image that a node cannot pull. PIPE_ACCEPT=1 writes
// tests/golden/registry/pull.expected again.
#include "orchestrators/kubernetes/pull_advice.hpp"

#include "support/golden.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using nlohmann::json;

/// Messages of container runtimes: Docker 20.10, containerd 1.6 and 1.7, CRI-O.
const char* const docker =
    "Failed to pull image \"I\": rpc error: code = Unknown desc = Error response from daemon: ";
const char* const containerd =
    "Failed to pull image \"I\": failed to pull and unpack image \"I\": failed to resolve "
    "reference \"I\": ";

TEST(PullAdvice, golden_each_cause_is_explained) {
  const json plain{{"metadata", {{"name", "p"}, {"namespace", "ml"}}}};
  auto with_secret = plain;
  with_secret["spec"]["imagePullSecrets"] = {{{"name", "team-registry"}}, {{"name", "other"}}};
  const std::string get = "Get \"https://registry.example:5000/v2/\": ";
  std::string text;
  const auto tell = [&](const json& pod, const std::string& said) {
    text += said + (pod == plain ? "" : "   (with pull secrets)") + "\n";
    for (const auto& hint : pull_advice(pod, "registry.example:5000/team/digits@sha256:01", said))
      text += "  hint: " + hint + "\n";
  };
  tell(plain,
       docker +
           std::string("Head \"https://registry.example:5000/v2/team/digits/manifests/sha256:01\": "
                       "no basic auth credentials"));
  tell(plain, containerd + std::string("pull access denied, repository does not exist or may "
                                       "require authorization: authorization failed"));
  tell(with_secret, docker + std::string("unauthorized: authentication required"));
  tell(plain, docker + get + "x509: certificate signed by unknown authority");
  tell(plain, docker + get + "x509: certificate has expired or is not yet valid");
  tell(plain, docker + get + "http: server gave HTTP response to HTTPS client");
  tell(plain, docker + std::string("manifest for I not found: manifest unknown: manifest unknown"));
  tell(plain, containerd + std::string("registry.example:5000/team/digits@sha256:01: not found"));
  tell(plain, containerd + std::string("no match for platform in manifest: not found"));
  tell(plain, docker + get + "dial tcp: lookup registry.example: no such host");
  tell(plain,
       containerd +
           std::string("failed to do request: Head \"...\": dial tcp 192.0.2.1:5000: i/o timeout"));
  tell(plain, docker + get + "dial tcp 192.0.2.1:5000: connect: connection refused");
  tell(plain, "Back-off pulling image \"I\"");
  test::expect_golden(text, std::filesystem::path(PIPELINE_SOURCE_DIR) / "tests/golden/registry",
                      "pull");
}

}  // namespace
}  // namespace pipeline::orchestrators::kubernetes

#include "kubernetes_api/kubeconfig.hpp"

#include <fstream>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/file.hpp"

namespace pipeline::kubernetes_api {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class Kubeconfig : public testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& text) {
    const auto path = folder.path() / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path;
  }
  /// With one file, which KUBECONFIG names.
  ClusterAccess find(const std::string& text, AccessOptions options = {}) {
    variables["KUBECONFIG"] = write("config", text).string();
    return find(std::move(options));
  }
  ClusterAccess find(AccessOptions options = {}) {
    KubeconfigEnvironment surroundings;
    surroundings.variable = [this](const char* name) -> const char* {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    };
    surroundings.pod_folder = folder.path() / "pod";
    return find_cluster(options, surroundings);
  }
  std::string error(const std::string& text, AccessOptions options = {}) {
    try {
      find(text, std::move(options));
    } catch (const core::InputError& wrong) {
      return wrong.what();
    }
    return "no error";
  }
  core::TemporaryFolder folder;
  std::map<std::string, std::string> variables{{"HOME", folder.path().string()}};
};

const std::string plain = R"(apiVersion: v1
kind: Config
current-context: lab
clusters:
- {name: c, cluster: {server: "https://10.0.0.1:6443/"}}
contexts:
- {name: lab, context: {cluster: c, user: u, namespace: ml}}
users:
- {name: u, user: {token: secret}}
)";

/// `plain`, its user's part replaced.
std::string with_user(const std::string& user) {
  return plain.substr(0, plain.find("{token")) + user + "}\n";
}

TEST_F(Kubeconfig, without_any_file_the_error_names_all_places) {
  try {
    find();
    FAIL();
  } catch (const core::EnvironmentError& error) {
    EXPECT_EQ(std::string(error.what()),
              "no cluster is configured: KUBECONFIG is not set, and there is no " +
                  folder.path().string() + "/.kube/config");
    EXPECT_FALSE(error.advice().empty());
  }
  variables["KUBECONFIG"] = "/nowhere/a:/nowhere/b";
  EXPECT_THROW(find(), core::EnvironmentError);
  variables.clear();
  try {
    find();
    FAIL();
  } catch (const core::EnvironmentError& error) {
    EXPECT_STREQ(error.what(), "no cluster is configured: neither KUBECONFIG nor HOME is set");
  }
}

TEST_F(Kubeconfig, errors_have_their_place_in_the_file) {
  EXPECT_THAT(error("clusters: [\n"), HasSubstr("config:"));
  EXPECT_THAT(error("- a\n"),
              HasSubstr("config:1:1: error: a kubeconfig must be a map, not a list"));
  auto text = plain;
  text.replace(text.find("current-context: lab"), 20, "current-context: lap");
  EXPECT_THAT(error(text), HasSubstr("config:3:18: error: there is no context 'lap'"));
  EXPECT_THAT(error(text), HasSubstr("did you mean 'lab'?"));
  EXPECT_THAT(error(plain, {.context = "lat"}), HasSubstr("there is no context 'lat'"));
  text = plain;
  text.replace(text.find("cluster: c,"), 11, "cluster: x,");
  EXPECT_THAT(error(text),
              HasSubstr("config:7:34: error: there is no cluster 'x', which context 'lab' names"));
  text = plain;
  text.replace(text.find("\"https://10.0.0.1:6443/\""), 24, "10.0.0.1:6443");
  EXPECT_THAT(error(text), HasSubstr("'server' of cluster 'c' must be a URL"));
  EXPECT_THAT(error(with_user("{token: [a]}")),
              HasSubstr("config:9:27: error: 'token' of user 'u' must be a text, not a list"));
  EXPECT_THAT(error(with_user("{client-key: /nowhere/key}")),
              HasSubstr("'client-key' of user 'u' names a file that is not there: /nowhere/key"));
  EXPECT_THAT(error(with_user("{client-key-data: '?'}")),
              HasSubstr("'client-key-data' of user 'u' is not base64"));
  EXPECT_THAT(error(with_user("{client-key-data: [aGk=]}")),
              HasSubstr("'client-key-data' of user 'u' is not base64"));
  EXPECT_THAT(error(with_user("{as-groups: [[a]]}")),
              HasSubstr("an item of 'as-groups' of user 'u' must be a text, not a list"));
  EXPECT_THAT(error(with_user("{client-key-data: aGk=}")),
              HasSubstr("user 'u' has a client key without a certificate"));
  EXPECT_THAT(error(with_user("{auth-provider: {name: gcp}}")),
              HasSubstr("which Kubernetes 1.26 has removed"));
  EXPECT_THAT(
      error(with_user("{exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: x}}")),
      HasSubstr("must be client.authentication.k8s.io/v1"));
  EXPECT_THAT(error(with_user("{exec: {apiVersion: client.authentication.k8s.io/v1}}")),
              HasSubstr("'exec' of user 'u' has no 'command'"));
}

TEST_F(Kubeconfig, errors_show_no_secret_of_the_file) {
  for (const auto* user : {"{token: secret: x}", "{token: [secret]}", "{client-key-data: secret?}",
                           "{auth-provider: {name: oidc, config: {id-token: secret}}}",
                           R"({"token": ["secret"]})", R"({"client-key-data" : "secret?"})",
                           "{exec: {apiVersion: client.authentication.k8s.io/v1, command: x, "
                           "env: [{name: A, value: [secret]}]}}"})
    EXPECT_THAT(error(with_user(user)),
                AllOf(HasSubstr("config:9"), HasSubstr("***"), Not(HasSubstr("secret"))));
}

TEST_F(Kubeconfig, errors_show_no_secret_that_is_below_its_key) {
  for (const auto* user :
       {"{token:\n  [secret]}", "{token:\n\n    {a: secret}}", "{\"token\":\n  {a: \"secret\"}}"})
    EXPECT_THAT(error(with_user(user)),
                AllOf(HasSubstr("must be a text"), HasSubstr("***"), Not(HasSubstr("secret"))));
  auto text = plain;
  text.replace(text.find("- {name: u,"), text.npos,
               "- name: u\n  user:\n    token:\n    - secret\n    username: x\n");
  EXPECT_THAT(error(text),
              AllOf(HasSubstr("must be a text"), HasSubstr("***"), Not(HasSubstr("secret"))));
}

TEST_F(Kubeconfig, without_a_chosen_context_the_existing_ones_are_listed) {
  auto text = plain;
  text.replace(text.find("current-context: lab\n"), 21, "");
  EXPECT_THAT(error(text), HasSubstr("no context is chosen"));
  EXPECT_THAT(error(text), HasSubstr("there are: lab"));
  EXPECT_EQ(find(text, {.context = "lab"}).name_space, "ml");
}

TEST_F(Kubeconfig, current_context_has_cluster_user_and_namespace) {
  const auto access = find(plain);
  EXPECT_EQ(access.server, "https://10.0.0.1:6443");
  EXPECT_EQ(access.identity.token, "secret");
  EXPECT_EQ(access.name_space, "ml");
  EXPECT_EQ(access.context, "lab");
  EXPECT_TRUE(access.tls.verify);
  EXPECT_EQ(find(plain, {.name_space = "other"}).name_space, "other");
}

TEST_F(Kubeconfig, of_several_files_the_first_that_has_it_counts) {
  const auto first = write("a/one",
                           "contexts: [{name: lab, context: {cluster: c, user: u}}]\nusers: "
                           "[{name: u, user: {tokenFile: token}}]\n");
  const auto second = write("b/two", plain);
  variables["KUBECONFIG"] = first.string() + "::/nowhere:" + second.string();
  const auto access = find();
  EXPECT_EQ(access.server, "https://10.0.0.1:6443");
  EXPECT_EQ(access.name_space, "default");  // the first file's context has none
  EXPECT_EQ(access.identity.token_file, folder.path() / "a/token");
  EXPECT_EQ(access.identity.token, "");
}

TEST_F(Kubeconfig, file_in_the_home_folder_is_used_where_no_variable_names_another) {
  write(".kube/config", plain);
  EXPECT_EQ(find().context, "lab");
}

TEST_F(Kubeconfig, certificates_are_files_beside_it_or_data) {
  write("ca.pem", "CA");
  auto text = plain;
  text.replace(text.find("server:"), 7,
               "certificate-authority: ca.pem, insecure-skip-tls-verify: true, tls-server-name: "
               "api.lab, proxy-url: 'socks5://p:1', server:");
  text = text.substr(0, text.find("{token")) +
         "{client-certificate-data: aGVsbG8=, client-key-data: \"d29y\\n  bGQ=\"}}\n";
  const auto access = find(text);
  EXPECT_EQ(access.tls.ca_file, (folder.path() / "ca.pem").string());
  EXPECT_EQ(access.tls.cert, "hello");
  EXPECT_EQ(access.tls.key, "world");
  EXPECT_FALSE(access.tls.verify);
  EXPECT_EQ(access.tls_server_name, "api.lab");
  EXPECT_EQ(access.proxy, "socks5://p:1");
}

TEST_F(Kubeconfig, plugin_is_found_as_kubectl_finds_it) {
  auto plugin =
      find(with_user("{exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: "
                     "./get-token, args: [a, '2'], env: [{name: A, value: b}], "
                     "installHint: install it, provideClusterInfo: true, interactiveMode: Never}}"))
          .identity.exec;
  ASSERT_TRUE(plugin);
  EXPECT_THAT(plugin->command, ElementsAre((folder.path() / "get-token").string(), "a", "2"));
  EXPECT_THAT(plugin->variables, ElementsAre("A=b"));
  EXPECT_EQ(plugin->install_hint, "install it");
  EXPECT_TRUE(plugin->wants_cluster);
  plugin =
      find(with_user("{exec: {apiVersion: client.authentication.k8s.io/v1, command: get-token}}"))
          .identity.exec;
  EXPECT_THAT(plugin->command, ElementsAre("get-token"));
}

TEST_F(Kubeconfig, impersonation_becomes_headers) {
  EXPECT_THAT(
      find(with_user("{token: t, as: boss, as-groups: [a, b]}")).identity.impersonate,
      ElementsAre("Impersonate-User: boss", "Impersonate-Group: a", "Impersonate-Group: b"));
  EXPECT_THAT(error(with_user("{token: \"a\\nInjected: x\"}")), HasSubstr("control character"));
}

TEST_F(Kubeconfig, a_pod_uses_its_service_account) {
  write("pod/token", "t");
  write("pod/namespace", "team\n");
  variables["KUBERNETES_SERVICE_HOST"] = "10.96.0.1";
  variables["KUBERNETES_SERVICE_PORT"] = "443";
  auto access = find();
  EXPECT_EQ(access.server, "https://10.96.0.1:443");
  EXPECT_EQ(access.identity.token_file, folder.path() / "pod/token");
  EXPECT_EQ(access.name_space, "team");
  EXPECT_THROW(find(AccessOptions{.context = "lab"}), core::EnvironmentError);
  variables["KUBERNETES_SERVICE_HOST"] = "fd00::1";
  EXPECT_EQ(find().server, "https://[fd00::1]:443");
}

}  // namespace
}  // namespace pipeline::kubernetes_api

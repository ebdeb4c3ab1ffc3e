#include "docker/credentials.hpp"

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/file.hpp"
#include "docker/credential_helper.hpp"
#include "support/sanitizers.hpp"

namespace pipeline::docker {
namespace {

class Credentials : public testing::Test {
 protected:
  Credentials()
      : path_(std::getenv("PATH")),
        config_(std::getenv("DOCKER_CONFIG") ? std::getenv("DOCKER_CONFIG") : "") {
    setenv("DOCKER_CONFIG", folder_.path().c_str(), 1);
    setenv("PATH", (folder_.path().string() + ":" + path_).c_str(), 1);
  }
  ~Credentials() override {
    setenv("PATH", path_.c_str(), 1);
    if (config_.empty())
      unsetenv("DOCKER_CONFIG");
    else
      setenv("DOCKER_CONFIG", config_.c_str(), 1);
  }
  void config(const std::string& text) {
    core::write_file_atomically(folder_.path() / "config.json", text);
  }
  void helper(const std::string& name, const std::string& script) {
    const auto file = folder_.path() / ("docker-credential-" + name);
    core::write_file_atomically(file, "#!/bin/sh\n" + script);
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }
  template <class Result>
  static Result await(async::Task<Result> task) {
    asio::io_context loop;
    Result result;
    asio::co_spawn(loop, std::move(task), [&](std::exception_ptr error, Result value) {
      if (error) std::rethrow_exception(error);
      result = std::move(value);
    });
    loop.run();
    return result;
  }
  static RegistryAuth auth(const std::string& registry) { return await(registry_auth(registry)); }
  static nlohmann::json header(const RegistryAuth& auth) {
    static const std::string digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    std::string text;
    unsigned bits = 0, count = 0;
    EXPECT_EQ(auth.header.size() % 4, 0U);
    for (const char c : auth.header) {
      if (c == '=') break;
      EXPECT_NE(digits.find(c), std::string::npos);
      bits = bits << 6 | static_cast<unsigned>(digits.find(c));
      if ((count += 6) >= 8) text += static_cast<char>(bits >> (count -= 8) & 255);
    }
    return nlohmann::json::parse(text);
  }

  core::TemporaryFolder folder_;
  std::string path_, config_;
};

TEST_F(Credentials, a_broken_config_is_reported_and_not_fatal) {
  config("{");
  const auto found = auth("docker.io");
  EXPECT_TRUE(found.credentials.empty());
  EXPECT_NE(found.notice.find("config.json is not a JSON object"), std::string::npos);
  EXPECT_EQ(header(found), nlohmann::json::object());
}

TEST_F(Credentials, a_failing_helper_is_reported_and_the_files_entry_is_used) {
  config(R"({"credsStore": "broken", "auths": {"registry.example": {"auth": "bWU6cGFzcw=="}}})");
  helper("broken", "echo 'the key ring is locked'; exit 2\n");
  const auto found = auth("registry.example");
  EXPECT_EQ(
      found.notice,
      "continuing without the credential helper for registry.example: docker-credential-broken "
      "failed: the key ring is locked");
  EXPECT_EQ(header(found)["username"], "me");
}

TEST_F(Credentials, a_helper_that_is_missing_or_badly_named_is_reported) {
  if (test::under_tsan) GTEST_SKIP() << test::vfork_is_fork;
  config(R"({"credsStore": "absent"})");
  EXPECT_NE(auth("registry.example").notice.find("docker-credential-absent: it is not on the PATH"),
            std::string::npos)
      << auth("registry.example").notice;
  config(R"({"credsStore": "../../bin/sh"})");
  EXPECT_NE(auth("registry.example").notice.find("not a plain name"), std::string::npos);
}

TEST_F(Credentials, a_helper_with_an_invalid_answer_is_reported) {
  config(R"({"credsStore": "odd"})");
  for (const char* script :
       {"echo '[1]'\n", "echo '{\"Username\": 5}'\n", "true\n", "head -c 3000000 /dev/zero\n"}) {
    helper("odd", script);
    EXPECT_NE(auth("registry.example").notice, "") << script;
  }
}

TEST_F(Credentials, a_helper_that_hangs_is_given_up) {
  helper("slow", "sleep 600 & sleep 600\n");
  const auto answer =
      await(ask_credential_helper("slow", "registry.example", std::chrono::milliseconds(100)));
  EXPECT_NE(answer.failure.find("did not respond"), std::string::npos) << answer.failure;
}

TEST_F(Credentials, a_helper_without_credentials_is_not_a_failure) {
  config(R"({"credsStore": "empty"})");
  helper("empty", "echo 'credentials not found in native keychain'; exit 1\n");
  const auto found = auth("registry.example");
  EXPECT_EQ(found.notice, "");
  EXPECT_TRUE(found.credentials.empty());
}

TEST_F(Credentials, a_registrys_own_helper_is_preferred_to_the_general_one) {
  config(R"({"credsStore": "all", "credHelpers": {"registry.example": "one"}})");
  helper("all", R"(echo '{"Username": "all", "Secret": "x"}')");
  helper("one", R"(read server; printf '{"Username": "one", "Secret": "%s %s"}' "$1" "$server")");
  EXPECT_EQ(
      header(auth("registry.example")),
      nlohmann::json::parse(
          R"({"username": "one", "password": "get registry.example", "serveraddress": "registry.example"})"));
  EXPECT_EQ(header(auth("other.example"))["username"], "all");
}

TEST_F(Credentials, a_token_of_a_helper_is_an_identity_token) {
  config(R"({"credsStore": "token"})");
  helper("token", R"(echo '{"Username": "<token>", "Secret": "abc"}')");
  EXPECT_EQ(
      header(auth("registry.example")),
      nlohmann::json::parse(R"({"identitytoken": "abc", "serveraddress": "registry.example"})"));
}

TEST_F(Credentials, docker_hub_is_kept_under_its_old_name) {
  config(R"({"auths": {"https://index.docker.io/v1/": {"auth": "bWU6cGE6c3M="}}})");
  EXPECT_EQ(
      header(auth("docker.io")),
      nlohmann::json::parse(
          R"({"username": "me", "password": "pa:ss", "serveraddress": "https://index.docker.io/v1/"})"));
  EXPECT_TRUE(auth("registry.example").credentials.empty());
  config(R"({"credsStore": "echo"})");
  helper("echo", R"sh(printf '{"Username": "%s", "Secret": "x"}' "$(cat)")sh");
  EXPECT_EQ(header(auth("docker.io"))["username"], "https://index.docker.io/v1/");
}

TEST_F(Credentials, entries_of_every_kind_are_understood) {
  config(
      R"({"auths": {"https://a.example/v2/": {"identitytoken": "t"}, "b.example:5000": {"username": "u", "password": "p"}, "c.example": {}, "d.example": {"auth": "!!"}}})");
  EXPECT_EQ(header(auth("a.example"))["identitytoken"], "t");
  EXPECT_EQ(header(auth("b.example:5000"))["password"], "p");
  EXPECT_TRUE(auth("b.example").credentials.empty());
  EXPECT_TRUE(auth("c.example").credentials.empty());
  EXPECT_TRUE(auth("d.example").credentials.empty());
}

}  // namespace
}  // namespace pipeline::docker

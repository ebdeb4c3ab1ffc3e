#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>

#include <gtest/gtest.h>

#include "core/digest.hpp"
#include "core/file.hpp"
#include "docker/engine_api.hpp"
#include "docker/engine_connection.hpp"
#include "docker/engine_errors.hpp"
#include "docker/engines.hpp"
#include "net/url.hpp"

namespace pipeline::docker {
namespace {

/// DOCKER_CONFIG in a folder of its own, the caller's variables put back afterwards.
class FindEndpoint : public testing::Test {
 protected:
  FindEndpoint() {
    for (const char* name : {"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_TLS", "DOCKER_TLS_VERIFY",
                             "DOCKER_CERT_PATH", "DOCKER_CONFIG"}) {
      const char* value = std::getenv(name);
      before_[name] = value ? std::optional<std::string>(value) : std::nullopt;
      unsetenv(name);
    }
    set("DOCKER_CONFIG", folder_.path());
  }
  ~FindEndpoint() override {
    for (const auto& [name, value] : before_) {
      if (value)
        set(name.c_str(), *value);
      else
        unsetenv(name.c_str());
    }
  }
  static void set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }
  void write(const std::string& path, const std::string& content) {
    core::make_folders((folder_.path() / path).parent_path());
    core::write_file_atomically(folder_.path() / path, content);
  }
  void write_context(const std::string& name, const std::string& content) {
    write("contexts/meta/" + core::sha256(name).hex() + "/meta.json", content);
  }
  static std::string failure() {
    try {
      find_endpoint();
    } catch (const core::EnvironmentError& error) {
      return error.what();
    }
    return "no error";
  }

  core::TemporaryFolder folder_;
  std::map<std::string, std::optional<std::string>> before_;
};

TEST_F(FindEndpoint, a_profiles_engines_come_before_the_environment) {
  set("DOCKER_HOST", "unix:///run/other.sock");
  EXPECT_EQ(find_engines({}).at(0).endpoint.url, "unix:///run/other.sock");
  write("gpu3/ca.pem", "x");
  const auto listed =
      R"([{"host": "unix:///run/a.sock"}, {"host": "ssh://gpu2", "address": "10.0.0.2"},
                          {"host": "tcp://gpu3", "certificates": ")" +
      (folder_.path() / "gpu3").string() + R"("}, {"host": "tcp://gpu4"}])";
  const auto engines = find_engines({{engines_field, listed}});
  ASSERT_EQ(engines.size(), 4U);
  EXPECT_EQ(engines[0].endpoint.url, "unix:///run/a.sock");
  EXPECT_EQ(engines[0].endpoint.origin, "the profile's engines");
  EXPECT_EQ(engines[1].address, "10.0.0.2");
  EXPECT_EQ(engines[2].endpoint.url, "tcp://gpu3:2376");
  EXPECT_EQ(engines[2].endpoint.tls.ca_file, (folder_.path() / "gpu3/ca.pem").string());
  EXPECT_TRUE(engines[2].endpoint.use_tls && engines[2].endpoint.tls.verify);
  EXPECT_EQ(engines[3].endpoint.url, "tcp://gpu4:2375");
}

TEST_F(FindEndpoint, a_context_that_does_not_exist_is_named) {
  set("DOCKER_CONTEXT", "far");
  EXPECT_NE(failure().find("the docker context 'far', named by DOCKER_CONTEXT, does not exist"),
            std::string::npos)
      << failure();
}

TEST_F(FindEndpoint, a_context_without_an_endpoint_is_named) {
  set("DOCKER_CONTEXT", "far");
  for (const char* content :
       {"", "[]", "{", R"({"Endpoints": 5})", R"({"Endpoints": {"docker": {"Host": 1}}})",
        R"({"Endpoints": {"kubernetes": {}}})"}) {
    write_context("far", content);
    EXPECT_NE(failure().find("names no endpoint"), std::string::npos)
        << content << ": " << failure();
  }
}

TEST_F(FindEndpoint, a_broken_config_file_is_named) {
  write("config.json", "{");
  EXPECT_NE(failure().find("config.json is not a JSON object"), std::string::npos) << failure();
}

TEST_F(FindEndpoint, the_default_is_the_socket) {
  for (const char* config : {"{}", R"({"currentContext": "default"})", R"({"currentContext": ""})",
                             R"({"currentContext": 7})"}) {
    write("config.json", config);
    EXPECT_EQ(find_endpoint().url, "unix:///var/run/docker.sock") << config;
    EXPECT_EQ(find_endpoint().origin, "default");
  }
}

TEST_F(FindEndpoint, the_current_context_is_used_and_a_variable_overrides_it) {
  write("config.json", R"({"currentContext": "near"})");
  write_context("near",
                R"({"Name": "near", "Endpoints": {"docker": {"Host": "unix:///run/near.sock"}}})");
  write_context(
      "far",
      R"({"Name": "far", "Endpoints": {"docker": {"Host": "tcp://far:2376", "SkipTLSVerify": true}}})");
  write("contexts/tls/" + core::sha256("far").hex() + "/docker/ca.pem", "x");
  EXPECT_EQ(find_endpoint().url, "unix:///run/near.sock");
  EXPECT_EQ(find_endpoint().origin, "docker context 'near'");
  EXPECT_FALSE(find_endpoint().use_tls);
  set("DOCKER_CONTEXT", "far");
  const auto far = find_endpoint();
  EXPECT_EQ(far.url, "tcp://far:2376");
  EXPECT_TRUE(far.use_tls);
  EXPECT_FALSE(far.tls.verify);
  EXPECT_TRUE(far.tls.ca_file.ends_with("/docker/ca.pem"));
  EXPECT_EQ(far.tls.key_file, "");
  set("DOCKER_HOST", "unix:///run/other.sock");
  EXPECT_EQ(find_endpoint().url, "unix:///run/other.sock");
  EXPECT_EQ(find_endpoint().origin, "DOCKER_HOST");
}

TEST_F(FindEndpoint, hosts_are_completed_as_docker_does) {
  const std::map<std::string, std::string> hosts{
      {"tcp://host", "tcp://host:2375"},      {"tcp://host:99/", "tcp://host:99"},
      {"host:99", "tcp://host:99"},           {"tcp://[::1]", "tcp://[::1]:2375"},
      {"tcp://[::1]:5", "tcp://[::1]:5"},     {"/run/x.sock", "unix:///run/x.sock"},
      {"ssh://user@host", "ssh://user@host"}, {"http://host", "http://host"}};
  for (const auto& [given, completed] : hosts) {
    set("DOCKER_HOST", given);
    EXPECT_EQ(find_endpoint().url, completed);
    EXPECT_FALSE(find_endpoint().use_tls);
  }
}

TEST_F(FindEndpoint, tls_follows_the_variables) {
  set("DOCKER_HOST", "tcp://host");
  set("DOCKER_TLS_VERIFY", "1");
  write("ca.pem", "x");
  auto endpoint = find_endpoint();
  EXPECT_EQ(endpoint.url, "tcp://host:2376");
  EXPECT_TRUE(endpoint.use_tls && endpoint.tls.verify);
  EXPECT_EQ(endpoint.tls.ca_file, (folder_.path() / "ca.pem").string());
  set("DOCKER_CERT_PATH", "/nowhere");
  EXPECT_EQ(find_endpoint().tls.ca_file, "");
  unsetenv("DOCKER_TLS_VERIFY");
  set("DOCKER_TLS", "1");
  EXPECT_TRUE(find_endpoint().use_tls);
  EXPECT_FALSE(find_endpoint().tls.verify);
}

std::pair<std::string, std::string> info_failure(const Endpoint& endpoint) {
  asio::io_context loop;
  EngineApi engine(loop, endpoint);
  std::pair<std::string, std::string> failure;
  asio::co_spawn(
      loop, [&]() -> async::Task<> { co_await engine.info(); },
      [&](std::exception_ptr error) {
        try {
          if (error) std::rethrow_exception(error);
        } catch (const core::EnvironmentError& failed) {
          failure.first = failed.what();
          for (const auto& line : failed.advice()) failure.second += line + "\n";
        }
      });
  loop.run();
  return failure;
}

TEST(EngineConnection, error_without_an_engine_names_the_endpoint_and_has_advice) {
  const auto [message, advice] =
      info_failure({.url = "unix:///nowhere/docker.sock", .origin = "DOCKER_HOST", .tls = {}});
  EXPECT_EQ(message,
            "no Docker Engine answers at unix:///nowhere/docker.sock (DOCKER_HOST): cannot connect "
            "to /nowhere/docker.sock: No such file or directory");
  EXPECT_NE(advice.find("sudo systemctl start docker"), std::string::npos);
  EXPECT_NE(advice.find("comes from DOCKER_HOST"), std::string::npos);
  EXPECT_NE(advice.find("--orchestrator local"), std::string::npos);
}

TEST(EngineConnection, an_endpoint_of_another_kind_is_refused_with_advice) {
  const auto [message, advice] =
      info_failure({.url = "npipe:////./pipe/docker", .origin = "docker context 'far'", .tls = {}});
  EXPECT_EQ(message,
            "cannot reach an engine at npipe:////./pipe/docker (docker context 'far'): this kind "
            "of endpoint is not supported");
  EXPECT_NE(advice.find("ssh://USER@HOST"), std::string::npos);
}

TEST(EngineConnection, texts_for_urls_are_encoded) {
  EXPECT_EQ(net::url_encode("a/b:c?d=\xc3\xa4 %"), "a%2Fb%3Ac%3Fd%3D%C3%A4%20%25");
  EXPECT_EQ(net::url_encode("a/b:c?d", "/:"), "a/b:c%3Fd");
}

TEST(EngineConnection, an_error_answer_gives_its_message) {
  EXPECT_EQ(message_of(R"({"message":"no such container"})"), "no such container");
  EXPECT_EQ(message_of("plain text\n"), "plain text");
  EXPECT_EQ(message_of(""), "no reason given");
  EXPECT_EQ(message_of("[1]"), "[1]");
}

TEST(EngineErrors, only_known_texts_have_advice) {
  const std::map<std::string, std::string> known{
      {"write /var/lib/docker/tmp/x: no space left on device", "docker system df"},
      {"pull access denied for x, repository does not exist or may require 'docker login'",
       "docker login"},
      {"manifest for debian:nope not found: manifest unknown: manifest unknown", "tag"},
      {"No such image: x:1", "name and tag"},
      {R"(could not select device driver "" with capabilities: [[gpu]])",
       "NVIDIA Container Toolkit"},
      {"Unknown runtime specified kata", "docker info"},
      {"unknown or invalid runtime name: kata", "docker info"},
      {"Bind for 0.0.0.0:80 failed: port is already allocated", "port"},
      {"toomanyrequests: You have reached your pull rate limit", "mirror"},
      {"network blue not found", "docker network create"},
      {"failed to set up container networking: network blue not found", "docker network create"},
      {"Range of CPUs is from 0.01 to 2.00, as there are only 2 CPUs available", "cpu_count"},
      {"Minimum memory limit allowed is 6MB", "resources.memory"},
      {"invalid mount config for type \"bind\": bind source path does not exist: /x",
       "engine elsewhere"},
      {"unable to find user nobody2: no matching entries in passwd file", "user"},
  };
  for (const auto& [text, part] : known) {
    const auto advice = advice_for(text);
    ASSERT_FALSE(advice.empty()) << text;
    EXPECT_NE(advice[0].find(part), std::string::npos) << advice[0];
  }
  EXPECT_TRUE(advice_for("something new").empty());
}

}  // namespace
}  // namespace pipeline::docker

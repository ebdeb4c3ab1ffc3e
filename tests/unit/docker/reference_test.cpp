#include "docker/reference.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace pipeline::docker {
namespace {

TEST(References, name_their_registry) {
  EXPECT_EQ(registry_of("ubuntu"), "docker.io");
  EXPECT_EQ(registry_of("ubuntu:22.04"), "docker.io");
  EXPECT_EQ(registry_of("nvidia/cuda:12"), "docker.io");
  EXPECT_EQ(registry_of("index.docker.io/library/x"), "docker.io");
  EXPECT_EQ(registry_of("registry.example/team/x:1"), "registry.example");
  EXPECT_EQ(registry_of("registry.example:5000/x@sha256:00"), "registry.example:5000");
  EXPECT_EQ(registry_of("localhost/x"), "localhost");
  EXPECT_EQ(registry_of("UPPER/x:1"), "UPPER");  // its login is never Docker Hub's
  EXPECT_EQ(registry_of("[::1]:5000/x"), "[::1]:5000");
}

TEST(References, only_a_host_is_a_registry) {
  for (const char* name :
       {"docker.io/owner/name", "localhost/x", "host:5000/x", "ghcr.io/owner/name:tag"})
    EXPECT_TRUE(names_registry(name)) << name;
  for (const char* name :
       {"pipe", "pipe:env-1", "owner/name", "owner/name:1.0", "name.with.dots:5000"})
    EXPECT_FALSE(names_registry(name)) << name;
}

TEST(References, are_split_at_tag_and_digest) {
  using Parts = std::pair<std::string, std::string>;
  EXPECT_EQ(split_reference("a"), Parts("a", "latest"));
  EXPECT_EQ(split_reference("host:5000/a"), Parts("host:5000/a", "latest"));
  EXPECT_EQ(split_reference("host:5000/a/b:1"), Parts("host:5000/a/b", "1"));
  EXPECT_EQ(split_reference("host:5000/a@sha256:00"), Parts("host:5000/a", "sha256:00"));
  EXPECT_EQ(split_reference("host:5000/a:1@sha256:00"), Parts("host:5000/a", "sha256:00"));
}

TEST(References, by_digest_is_of_the_same_repository_however_it_is_written) {
  const nlohmann::json image{
      {"RepoDigests", {"python@sha256:01", "host:5000/a@sha256:02", "owner/name@sha256:03"}}};
  EXPECT_EQ(pinned_reference(image, "python:3.11"), "python@sha256:01");
  EXPECT_EQ(pinned_reference(image, "docker.io/library/python:3.11"),
            "docker.io/library/python@sha256:01");
  EXPECT_EQ(pinned_reference(image, "docker.io/owner/name"), "docker.io/owner/name@sha256:03");
  EXPECT_EQ(pinned_reference(image, "host:5000/a:env"), "host:5000/a@sha256:02");
  EXPECT_EQ(pinned_reference(image, "host:5001/a:env"), "");
  EXPECT_EQ(pinned_reference(image, "host:5000/ab"), "");
  EXPECT_EQ(pinned_reference({{"RepoDigests", nullptr}}, "python"), "");
  EXPECT_EQ(pinned_reference(nlohmann::json::object(), "python"), "");
}

}  // namespace
}  // namespace pipeline::docker

#include "orchestrators/docker/service_spec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pipeline::orchestrators::docker_engine {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::ElementsAre;

class ServiceSpecTest : public testing::Test {
 protected:
  ServiceSpecTest() {
    step.name = "ask";
    step.settings->docker.labels = {{"team", "ml"}};
    step.services["db"] = {.image = "postgres:16",
                           .command = {"-c", "fsync=off"},
                           .environment = {{"MODE", "fast"}, {"TOKEN", {}}, {"A", {}}},
                           .ready = {.port = 5432},
                           .resources = {.cpu_count = 0.5, .memory = 1024}};
    place.network = "pipe-r1-ask-2";
    place.init = "/state/programs/init";
  }
  AttemptSpec attempt() {
    return {.step = step,
            .pipeline = "digits",
            .run_id = "r1",
            .number = 2,
            .code = "/state/code",
            .inputs = {{"data", "d.csv", "/state/artifact"}},
            .outputs = "/state/out",
            .output_names = {},
            .scratch = "/state/scratch",
            .environment = {{"A", "1"}, {"B", "2"}},
            .secrets = {{"TOKEN", "hush"}},
            .gpus = {}};
  }
  json body() { return service_body(attempt(), place, "db", "sha256:5"); }

  StepSpec step;
  ContainerOptions place{
      .image = "sha256:1", .root = "/project", .home = "/home/me", .user = "1:1", .owner = "me"};
};

TEST_F(ServiceSpecTest, is_reached_by_its_name_in_the_attempts_network_and_has_its_labels) {
  const auto made = body();
  EXPECT_EQ(made["HostConfig"]["NetworkMode"], "pipe-r1-ask-2");
  EXPECT_EQ(made["NetworkingConfig"]["EndpointsConfig"]["pipe-r1-ask-2"]["Aliases"],
            json::array({"db"}));
  const auto labels = network_body(attempt(), place)["Labels"];
  for (const auto& [name, value] : container_labels(attempt(), place)) {
    EXPECT_EQ(made["Labels"][name], value);
    EXPECT_EQ(labels[name], value);
  }
  EXPECT_EQ(made["Labels"][service_label], "db");
  EXPECT_EQ(made["Labels"]["team"], "ml");
  EXPECT_TRUE(labels.contains(service_label));
}

TEST_F(ServiceSpecTest, runs_the_images_entry_point_as_its_user_unless_settings_name_others) {
  auto made = body();
  EXPECT_FALSE(made.contains("Entrypoint"));
  EXPECT_FALSE(made.contains("User"));
  EXPECT_EQ(made["Image"], "sha256:5");
  EXPECT_EQ(made["Cmd"], json::array({"-c", "fsync=off"}));
  EXPECT_EQ(made["HostConfig"]["Memory"], 1024);
  EXPECT_EQ(made["HostConfig"]["NanoCpus"], 500'000'000);
  step.services["db"].entrypoint = {"sh"};
  EXPECT_EQ(body()["Entrypoint"], json::array({"sh"}));
}

TEST_F(ServiceSpecTest, has_the_rights_of_steps_and_reads_their_files_only) {
  const auto host = body()["HostConfig"];
  EXPECT_THAT(host["SecurityOpt"], Contains("no-new-privileges"));
  EXPECT_THAT(host["CapDrop"], Contains("MKNOD"));
  std::vector<std::string> targets;
  for (const auto& mount : host["Mounts"]) {
    EXPECT_EQ(mount["ReadOnly"], true) << mount;
    targets.push_back(mount["Target"]);
  }
  EXPECT_THAT(targets, ElementsAre("/pipe/code", "/pipe/inputs/data.csv", "/pipe/init"));
}

TEST_F(ServiceSpecTest, has_the_variables_that_it_names) {
  const auto all = body()["Env"].get<std::vector<std::string>>();
  EXPECT_THAT(all, ElementsAre("A=1", "MODE=fast", "PIPE_INPUT_DATA=/pipe/inputs/data.csv",
                               "TOKEN=hush", "NVIDIA_VISIBLE_DEVICES=void"))
      << "the service sees no GPUs, because its step has none";
}

TEST_F(ServiceSpecTest, is_checked_within_its_container) {
  const auto check = [&] { return readiness_check(step.services["db"].ready, place); };
  EXPECT_THAT(check(), ElementsAre("/pipe/init", "ready", "5432"));
  step.services["db"].ready.http = "/health";
  EXPECT_THAT(check(), ElementsAre("/pipe/init", "ready", "5432", "/health"));
  place.init.clear();
  EXPECT_TRUE(check().empty());
  step.services["db"].ready = {.command = {"pg_isready"}};
  EXPECT_THAT(check(), ElementsAre("pg_isready"));
}

TEST_F(ServiceSpecTest, the_step_is_in_the_network_of_its_services) {
  const auto network = [&] {
    return container_body(attempt(), place)["HostConfig"]["NetworkMode"];
  };
  EXPECT_EQ(network(), place.network);
  EXPECT_EQ(network_body(attempt(), place)["Internal"], false);
  step.settings->docker.network = "none";
  EXPECT_EQ(network(), place.network) << "the network of the services leads nowhere else";
  EXPECT_EQ(network_body(attempt(), place)["Internal"], true);
  step.settings->docker.network = "lab";
  EXPECT_EQ(network(), "lab") << "the step joins the network of its services afterwards";
  place.network.clear();
  step.settings->docker.network.reset();
  EXPECT_FALSE(container_body(attempt(), place)["HostConfig"].contains("NetworkMode"));
}

}  // namespace
}  // namespace pipeline::orchestrators::docker_engine

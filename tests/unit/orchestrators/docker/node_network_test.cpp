#include "orchestrators/docker/node_network.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"

namespace pipeline::orchestrators::docker_engine {
namespace {

using nlohmann::json;
using testing::ElementsAre;

TEST(NodeNetwork, has_an_address_for_each_node_besides_the_gateway) {
  EXPECT_THAT(addresses_in("172.18.0.0/16", "172.18.0.1", 3),
              ElementsAre("172.18.0.2", "172.18.0.3", "172.18.0.4"));
  EXPECT_THAT(addresses_in("10.0.0.248/29", "10.0.0.251", 3),
              ElementsAre("10.0.0.249", "10.0.0.250", "10.0.0.252"));
  EXPECT_EQ(addresses_in("10.0.0.0/29", "10.0.0.1", 5).back(), "10.0.0.6");
  EXPECT_EQ(addresses_in("10.0.0.0/22", "10.0.0.1", 300).back(), "10.0.1.45");
}

TEST(NodeNetwork, that_is_too_small_or_not_known_is_an_error) {
  EXPECT_THROW(addresses_in("10.0.0.0/29", "10.0.0.1", 6), core::EnvironmentError);
  for (const auto* subnet : {"", "10.0.0.0", "10.0.0.0/31", "10.0.0.0/x", "fd00::/64", "10.0.0/24"})
    EXPECT_THROW(addresses_in(subnet, "", 1), core::EnvironmentError) << subnet;
}

TEST(NodeNetwork, whose_subnet_is_taken_is_recognised_by_the_message_of_each_engine) {
  for (const auto* refusal :
       {"Pool overlaps with other one on this address space",
        "invalid pool request: Pool overlaps with other one on this address space",
        "subnet 10.89.1.0/24 is already used on the host or by another config",
        "subnet 10.89.1.0/24 is being used by a network interface",
        "network 10.89.1.0/24 is already being used by a cni configuration"})
    EXPECT_TRUE(says_subnet_is_taken(refusal)) << refusal;
  EXPECT_FALSE(says_subnet_is_taken("network name pipe-r1-train-1 already used"));
  EXPECT_FALSE(says_subnet_is_taken("could not find an available address pool"));
}

TEST(NodeContainer, has_its_rank_and_its_address) {
  StepSpec step;
  step.name = "train";
  step.command.arguments.push_back({{std::string("train")}});
  step.nodes = {.count = 2};
  const NodeAddresses addresses{{"10.0.0.2", "10.0.0.3"}, node_port, "pipe-r1-train-1"};
  AttemptSpec attempt{.step = step,
                      .pipeline = "digits",
                      .run_id = "r1",
                      .number = 1,
                      .code = "/state/code",
                      .inputs = {},
                      .outputs = "/state/out",
                      .output_names = {},
                      .scratch = "/state/scratch",
                      .environment = {},
                      .secrets = {},
                      .gpus = {}};
  ContainerOptions place;
  EXPECT_EQ(container_name(attempt), "pipe-r1-train-1");
  EXPECT_FALSE(container_body(attempt, place).contains("NetworkingConfig"));
  attempt.process = {.rank = 1, .ranks = 2, .node = 1, .nodes = 2, .addresses = &addresses};
  place.network = addresses.network;
  place.address = "10.0.0.3";
  EXPECT_EQ(container_name(attempt), "pipe-r1-train-1-1");
  const auto body = container_body(attempt, place);
  EXPECT_EQ(body["Labels"][rank_label], "1");
  EXPECT_EQ(body["HostConfig"]["NetworkMode"], "pipe-r1-train-1");
  EXPECT_EQ(body["NetworkingConfig"]["EndpointsConfig"]["pipe-r1-train-1"],
            json::parse(R"({"IPAMConfig": {"IPv4Address": "10.0.0.3"}})"));
  EXPECT_THAT(body["Env"], testing::Contains("MASTER_ADDR=10.0.0.2"));
  step.settings->docker.network = "lab";
  EXPECT_FALSE(container_body(attempt, place).contains("NetworkingConfig"))
      << "the container joins the attempt's network afterwards";
}

}  // namespace
}  // namespace pipeline::orchestrators::docker_engine

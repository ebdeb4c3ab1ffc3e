#include "orchestrators/docker/engine_addresses.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "support/run_task.hpp"

namespace pipeline::orchestrators::docker_engine {
namespace {

using testing::ElementsAre;

docker::RunEngine engine(std::string url, std::string address = {}) {
  docker::RunEngine at;
  at.endpoint.url = std::move(url);
  at.address = std::move(address);
  return at;
}

std::vector<std::string> found(const std::vector<docker::RunEngine>& engines) {
  asio::io_context loop;
  return test::run_task(loop, addresses_of(engines));
}

TEST(EngineAddresses, engines_on_this_machine_meet_at_its_own_address) {
  EXPECT_THAT(found({engine("unix:///run/a.sock"), engine("unix:///run/b.sock")}),
              ElementsAre("127.0.0.1", "127.0.0.1"));
  EXPECT_THAT(found({engine("unix:///run/a.sock"), engine("ssh://root@127.0.0.1:2222/run/b.sock")}),
              ElementsAre("127.0.0.1", "127.0.0.1"));
}

TEST(EngineAddresses, a_configured_address_is_preferred_to_that_of_the_url) {
  EXPECT_THAT(found({engine("unix:///run/a.sock", "127.0.0.7"), engine("tcp://127.0.0.1:2376")}),
              ElementsAre("127.0.0.7", "127.0.0.1"));
}

TEST(EngineAddresses, a_name_without_an_address_is_an_error_with_advice) {
  try {
    found({engine("unix:///run/a.sock"), engine("ssh://no-such-host.invalid")});
    FAIL();
  } catch (const core::EnvironmentError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("'no-such-host.invalid', which has no IPv4"));
    EXPECT_THAT(error.advice().front(), testing::HasSubstr("{host: ssh://no-such-host.invalid, "));
  }
}

TEST(EngineAddresses, nodes_are_distributed_in_order) {
  const auto dealt = [](unsigned nodes, std::size_t engines) {
    std::vector<std::size_t> all;
    for (unsigned node = 0; node < nodes; ++node)
      all.push_back(engine_of_node(node, nodes, engines));
    return all;
  };
  EXPECT_THAT(dealt(1, 2), ElementsAre(0));
  EXPECT_THAT(dealt(2, 2), ElementsAre(0, 1));
  EXPECT_THAT(dealt(2, 3), ElementsAre(0, 1));
  EXPECT_THAT(dealt(4, 2), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(dealt(5, 2), ElementsAre(0, 0, 0, 1, 1));
}

TEST(HostOfEndpoint, is_the_name_without_the_user_and_the_port) {
  EXPECT_EQ(docker::host_of_endpoint("unix:///run/a.sock"), "");
  EXPECT_EQ(docker::host_of_endpoint("ssh://me@gpu2:22/run/a.sock"), "gpu2");
  EXPECT_EQ(docker::host_of_endpoint("ssh://gpu2"), "gpu2");
  EXPECT_EQ(docker::host_of_endpoint("tcp://10.0.0.3:2376"), "10.0.0.3");
  EXPECT_EQ(docker::host_of_endpoint("tcp://[fd00::3]:2376"), "fd00::3");
}

}  // namespace
}  // namespace pipeline::orchestrators::docker_engine

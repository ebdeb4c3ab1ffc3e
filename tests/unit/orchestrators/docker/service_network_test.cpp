// Networks of an engine that is lost while it makes them.
#include "orchestrators/docker/service_network.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/http_server.hpp"
#include "support/run_task.hpp"
#include "support/server_endpoint.hpp"

namespace pipeline::test {
namespace {

using testing::HasSubstr;

/// An engine that makes a network, and loses the connection before it answers.
class ForgetfulEngine : public testing::Test {
 protected:
  async::Task<> answer(HttpExchange& call) {
    if (call.target == "/version") return call.answer(200, R"({"ApiVersion": "1.45"})");
    if (call.target.ends_with("/networks/create")) {
      if (++creations_ > 1) return call.answer(409, R"({"message": ")" + refusal_ + R"("})");
      call.cut();
      return call.answer(0, "");
    }
    if (call.target.ends_with("/networks/pipe-r1-ask-1")) return call.answer(200, network_);
    return call.answer(200, "");
  }
  void make() {
    nlohmann::json body;
    body["Name"] = "pipe-r1-ask-1";
    body["Labels"]["pipe.run"] = "r1";
    docker::EngineApi api(loop_, endpoint_of(engine_));
    run_task(loop_, orchestrators::docker_engine::make_network(api, std::move(body)));
  }

  asio::io_context loop_;
  int creations_ = 0;
  std::string refusal_ = "network with name pipe-r1-ask-1 already exists";
  std::string network_ = R"({"Id": "n1", "Labels": {"pipe.run": "r1", "more": "x"}})";
  HttpServer engine_{loop_, [this](HttpExchange& call) { return answer(call); }};
};

TEST_F(ForgetfulEngine, has_the_network_that_it_made_before_the_connection_was_lost) {
  EXPECT_NO_THROW(make());
  EXPECT_EQ(creations_, 2);
}

TEST_F(ForgetfulEngine, may_be_podman) {
  refusal_ = "network name pipe-r1-ask-1 already used: network already exists";
  EXPECT_NO_THROW(make());
}

TEST_F(ForgetfulEngine, may_have_a_network_of_another_run_with_that_name) {
  network_ = R"({"Id": "n1", "Labels": {"pipe.run": "r2"}})";
  try {
    make();
    ADD_FAILURE() << "the network is another run's";
  } catch (const docker::EngineError& error) {
    EXPECT_EQ(error.status(), 409);
    EXPECT_THAT(error.what(), HasSubstr("already exists"));
  }
}

}  // namespace
}  // namespace pipeline::test

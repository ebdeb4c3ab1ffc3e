// A service on an engine that answers as the test wants.
#include "orchestrators/docker/service_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/attempt_builder.hpp"
#include "support/http_server.hpp"
#include "support/run_task.hpp"
#include "support/server_endpoint.hpp"

namespace pipeline::test {
namespace {

using testing::HasSubstr;

/// An engine whose containers do not end.
class ServiceOfEngine : public testing::Test {
 protected:
  async::Task<> answer(HttpExchange& call) {
    if (call.target == "/version") return call.answer(200, R"({"ApiVersion": "1.45"})");
    if (call.target.find("/containers/create?") != std::string::npos)
      return call.answer(201, R"({"Id": "0123456789abcdef"})");
    const bool is_stream = call.target.find("/wait?") != std::string::npos ||
                           call.target.find("/logs?") != std::string::npos;
    return is_stream ? call.hang() : call.answer(200, "");
  }

  asio::io_context loop_;
  HttpServer engine_{loop_, [this](HttpExchange& call) { return answer(call); }};
};

TEST_F(ServiceOfEngine, whose_port_cannot_be_looked_at_fails_at_once_and_names_a_command) {
  AttemptBuilder builder(program({"train"}));
  builder.step.services["db"] = {.image = "postgres:16", .ready = {.port = 5432}};
  const auto attempt = builder.attempt();
  const orchestrators::docker_engine::ContainerOptions options{.image = "sha256:1"};
  docker::EngineApi api(loop_, endpoint_of(engine_));
  orchestrators::docker_engine::ServiceRun service(api, attempt, options, "db", "sha256:2", [] {});
  run_task(loop_, service.run());
  ASSERT_TRUE(service.failure());
  EXPECT_FALSE(service.is_ready());
  EXPECT_THAT(service.failure()->message,
              HasSubstr("its service 'db' (postgres:16) cannot be checked: containers of this "
                        "engine cannot run pipe's program"));
  EXPECT_THAT(service.failure()->hints.front(), HasSubstr("`ready: {command: [...]}`"));
}

}  // namespace
}  // namespace pipeline::test

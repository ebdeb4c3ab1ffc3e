// The container that lists an engine's GPUs can hang with the driver of the machine.
#include "orchestrators/docker/gpu_probe.hpp"

#include <algorithm>
#include <cstdlib>

#include <gtest/gtest.h>

#include "support/http_server.hpp"
#include "support/run_task.hpp"
#include "support/server_endpoint.hpp"

namespace pipeline::test {
namespace {

/// An engine whose containers never end. A request to wait for one stops the probe.
class HangingProbe : public testing::Test {
 protected:
  async::Task<> answer(HttpExchange& call) {
    if (call.target == "/version") return call.answer(200, R"({"ApiVersion": "1.45"})");
    if (call.target.find("/containers/create?") != std::string::npos)
      return call.answer(201, R"({"Id": "0123456789abcdef"})");
    if (call.target.find("/wait?") == std::string::npos) return call.answer(200, "");
    cancel_.stop(core::StopLevel::graceful);
    return call.hang();
  }

  asio::io_context loop_;
  core::CancelSource cancel_;
  HttpServer engine_{loop_, [this](HttpExchange& call) { return answer(call); }};
};

TEST_F(HangingProbe, is_ended_by_a_stop_and_its_container_is_removed) {
  docker::EngineApi api(loop_, endpoint_of(engine_));
  docker::EngineInfo engine;
  engine.version = "28.3.0";
  nlohmann::json system;
  system["Runtimes"]["nvidia"]["path"] = "nvidia-container-runtime";
  docker::GpuAccess access(engine, system);
  ASSERT_FALSE(access.methods().empty());
  StringMap labels;
  labels["pipe.run"] = "r1";
  EXPECT_THROW(run_task(loop_, orchestrators::docker_engine::probe_gpus(
                                   api, access, "x:1", std::move(labels), cancel_)),
               net::TransportError);
  EXPECT_TRUE(std::ranges::any_of(engine_.asked, [](const std::string& each) {
    return each.starts_with("DELETE ") && each.find("0123456789abcdef") != std::string::npos;
  }));
}

}  // namespace
}  // namespace pipeline::test

#include <cstdlib>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "docker/engine_api.hpp"
#include "support/http_server.hpp"
#include "support/run_task.hpp"

namespace pipeline::docker {
namespace {

using nlohmann::json;
using test::run_task;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

/// A server that says of itself what an engine of some version says.
class AnEngine : public testing::Test {
 protected:
  AnEngine() {
    if (const char* value = std::getenv("DOCKER_BUILDKIT")) wish_ = value;
    unsetenv("DOCKER_BUILDKIT");
  }
  ~AnEngine() override {
    if (wish_) setenv("DOCKER_BUILDKIT", wish_->c_str(), 1);
  }
  async::Task<> answer(test::HttpExchange& exchange) {
    const auto& target = exchange.target;
    json body = json::object();
    if (target == "/_ping") co_return co_await exchange.answer(200, "OK", "Builder-Version: 2\r\n");
    if (target == "/version")
      body = {{"Version", version},
              {"ApiVersion", api},
              {"MinAPIVersion", "1.44"},
              {"Os", "linux"},
              {"Arch", "amd64"}};
    if (target == "/info" && is_containerds_store)
      body["DriverStatus"] = json::array({{"driver-type", "io.containerd.snapshotter.v1"}});
    if (target == "/info" && !is_containerds_store)
      body["DriverStatus"] = json::array({{"Backing Filesystem", "extfs"}});
    co_await exchange.answer(200, body.dump());
  }
  bool builds_with_buildkit(const std::string& of) {
    version = of;
    EngineApi engine(loop, {.url = "tcp" + server.url().substr(4), .origin = "test"});
    return run_task(loop, engine.info())->buildkit;
  }

  asio::io_context loop;
  std::string version = "29.0.0", api = "1.47";
  bool is_containerds_store = true;
  test::HttpServer server{loop, [this](test::HttpExchange& exchange) { return answer(exchange); }};

 private:
  std::optional<std::string> wish_;
};

TEST_F(AnEngine, before_27_5_builds_with_the_classic_builder_on_containerds_store) {
  for (const char* old : {"23.0.6", "26.1.5+dfsg1", "27.0.0", "27.4.1", "27.4.0-rc.2"})
    EXPECT_FALSE(builds_with_buildkit(old)) << old;
  for (const char* newer : {"27.5.0", "27.5.1", "28.0.0-rc.1", "28.3.3", "29.0.0"})
    EXPECT_TRUE(builds_with_buildkit(newer)) << newer;
}

TEST_F(AnEngine, builds_with_buildkit_on_another_store) {
  is_containerds_store = false;
  for (const char* any : {"20.10.24+dfsg1", "26.1.5+dfsg1", "27.4.1", "29.0.0"})
    EXPECT_TRUE(builds_with_buildkit(any)) << any;
}

TEST_F(AnEngine, without_that_store_is_not_asked_for_it) {
  EXPECT_TRUE(builds_with_buildkit("20.10.24+dfsg1"));
  EXPECT_TRUE(builds_with_buildkit("29.0.0"));
  EXPECT_THAT(server.asked, Not(Contains("GET /info")));
}

/// From 1.52 on, /system/df has sums, and lists nothing unless it is asked to. `pipe clean` reads
/// the lists.
TEST_F(AnEngine, from_1_52_is_asked_for_its_disk_usage_in_the_form_that_lists_images) {
  version = "29.7.0";
  api = "1.56";
  EngineApi engine(loop, {.url = "tcp" + server.url().substr(4), .origin = "test"});
  run_task(loop, engine.disk_usage());
  EXPECT_THAT(server.asked.back(), HasSubstr("/system/df"));
  const auto minor = std::stoi(server.asked.back().substr(std::string("GET /v1.").size()));
  EXPECT_LT(minor, 52) << "the newer form needs another reader in clean_command.cpp";
}

}  // namespace
}  // namespace pipeline::docker

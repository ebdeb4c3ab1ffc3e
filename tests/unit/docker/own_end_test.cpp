// Whether a container ended by itself or with its engine is read from the engine's events.
#include <cstdlib>

#include <gtest/gtest.h>

#include "async/sleep.hpp"
#include "docker/engine_api.hpp"
#include "support/http_server.hpp"
#include "support/run_task.hpp"
#include "support/server_endpoint.hpp"

namespace pipeline::test {
namespace {

using docker::EngineApi;

class OwnEnd : public testing::Test {
 protected:
  /// Returns whether a container's own end is seen if the engine streams these events, the last
  /// one late.
  bool saw(const std::vector<std::string>& actions) {
    HttpServer engine(loop_, [&](HttpExchange& call) -> async::Task<> {
      if (call.target.find("/events?") == call.target.npos) {
        co_await call.answer(200, R"({"Version": "26.1.5", "ApiVersion": "1.45", "Os": "linux",
                                      "Arch": "amd64", "MinAPIVersion": "1.24"})");
        co_return;
      }
      co_await call.begin_stream();
      for (const auto& action : actions) {
        if (&action == &actions.back()) co_await async::sleep(std::chrono::seconds(1), nullptr);
        co_await call.piece(R"({"Type": "container", "Action": ")" + action + "\"}\n");
      }
      // An engine ends the stream at `until`, which has passed for a container that ended earlier.
      if (call.target.find("until=") != call.target.npos) co_await call.end_stream();
      co_await call.hang();
    });
    EngineApi api(loop_, endpoint_of(engine));
    const bool result = run_task(loop_, api.saw_own_end("0123456789abcdef"));
    asked_ = engine.asked;
    return result;
  }

  asio::io_context loop_;
  std::vector<std::string> asked_;
};

TEST_F(OwnEnd, is_seen_however_long_the_engine_took_to_store_the_output) {
  EXPECT_TRUE(saw({"create", "start", "die"}));
  // A time until which events are wanted would depend on both clocks, and on the end's time.
  EXPECT_EQ(asked_.back().find("until="), std::string::npos) << asked_.back();
}

TEST_F(OwnEnd, is_not_seen_if_the_engine_stopped_the_container) {
  EXPECT_FALSE(saw({"create", "start", "kill", "die"}));
}

}  // namespace
}  // namespace pipeline::test

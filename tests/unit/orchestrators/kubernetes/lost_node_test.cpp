// A step that is to end ends though its pod stays, since the pod's node is away.
#include <gtest/gtest.h>

#include "async/gate.hpp"
#include "orchestrators/kubernetes/job_informer.hpp"
#include "orchestrators/kubernetes/job_run.hpp"
#include "support/attempt_builder.hpp"
#include "support/http_server.hpp"
#include "support/run_task.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using nlohmann::json;
using test::AttemptBuilder;
using test::HttpExchange;
using test::run_task;

/// An API server whose node is away from the moment that the only pod is to be deleted.
class LostNode : public testing::Test {
 protected:
  async::Task<> answer(HttpExchange& exchange) {
    const auto has = [&](std::string_view part) {
      return exchange.target.find(part) != std::string::npos;
    };
    if (has("watch=") && has("/pods")) co_return co_await report_pod(exchange);
    if (has("watch=")) co_return co_await exchange.hang();
    if (has("/log?")) co_return co_await exchange.answer(404, "{}");
    if (exchange.method == "POST") {
      auto made = json::parse(exchange.body);
      made["metadata"]["uid"] = "uid-1";
      job = made["metadata"]["name"].get<std::string>();
      is_made.open();
      co_return co_await exchange.answer(201, made.dump());
    }
    if (exchange.method == "DELETE" && has("/pods/")) is_deleted.open();
    co_await exchange.answer(200, R"({"items": [], "metadata": {"resourceVersion": "1"}})");
  }

  /// Reports that the pod runs, and once it is deleted, what a node controller says of it.
  async::Task<> report_pod(HttpExchange& exchange) {
    co_await exchange.begin_stream();
    co_await is_made.wait();
    json pod;
    pod["metadata"] = {{"name", "p"}, {"uid", "uid-2"}, {"resourceVersion", "2"}};
    pod["metadata"]["labels"]["job-name"] = job;
    pod["status"]["phase"] = "Running";
    pod["status"]["containerStatuses"][0]["name"] = step_container;
    pod["status"]["containerStatuses"][0]["state"]["running"] = json::object();
    auto line = json{{"type", "ADDED"}, {"object", pod}}.dump() + "\n";
    co_await exchange.piece(line);
    co_await is_deleted.wait();
    pod["metadata"]["resourceVersion"] = "3";
    pod["metadata"]["deletionTimestamp"] = "2026-11-21T08:15:00Z";
    pod["status"]["conditions"][0] = {{"type", "Ready"}, {"status", "False"}};
    line = json{{"type", "MODIFIED"}, {"object", pod}}.dump() + "\n";
    co_await exchange.piece(line);
    co_await exchange.hang();
  }

  static async::Task<AttemptResult> run(kubernetes_api::Client& client, AttemptBuilder& builder) {
    JobInformer informer(client, "x");
    co_await informer.ready(builder.cancel);
    JobOptions place;
    place.user = "1000:100";
    auto attempt = builder.attempt();
    attempt.io.on_began = [&builder](std::chrono::milliseconds) {
      builder.cancel.stop(core::StopLevel::immediate);
    };
    Removals removals;
    AgentReport report;
    const JobContext context{client, informer, removals, report};
    auto result = co_await run_job(context, attempt, place);
    co_return result;
  }

  asio::io_context loop;
  async::Gate is_made{loop.get_executor()}, is_deleted{loop.get_executor()};
  std::string job;
  test::HttpServer server{loop, [this](HttpExchange& exchange) { return answer(exchange); }};
};

TEST_F(LostNode, does_not_hold_up_a_step_that_is_to_end_at_once) {
  kubernetes_api::ClusterAccess access;
  access.server = server.url();
  access.name_space = "ml";
  kubernetes_api::Client client(loop, access,
                                {std::chrono::milliseconds(1), std::chrono::milliseconds(2), 2});
  AttemptBuilder builder(test::shell("true"));
  const auto result = run_task(loop, run(client, builder));
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::cancelled) << result.failure->message;
  EXPECT_FALSE(result.exit_code);
}

}  // namespace
}  // namespace pipeline::orchestrators::kubernetes

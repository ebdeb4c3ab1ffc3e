#include "orchestrators/kubernetes/service_logs.hpp"

#include <gtest/gtest.h>

#include "support/http_server.hpp"
#include "support/run_task.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

class ServiceLines : public LogSink {
 public:
  void write(Stream, std::string_view bytes) override { text += bytes; }
  std::string text;
};

class TheLogOfAService : public testing::Test {
 protected:
  /// Returns the lines of the service `db` in the log of a step that ends at once.
  std::string log() {
    kubernetes_api::ClusterAccess access;
    access.server = server.url();
    access.name_space = "ml";
    kubernetes_api::Client client(loop, access);
    StepSpec step;
    step.services["db"] = {};
    const auto pod =
        nlohmann::json::parse(R"({"metadata": {"name": "p"}, "status": {"containerStatuses": [)"
                              R"({"name": "service-db", "state": {"running": {}}}]}})");
    ServiceLines lines;
    ServiceLogs logs(client, lines, loop.get_executor());
    logs.begin(step, pod);
    test::run_task(loop, logs.end(std::chrono::milliseconds(50)));
    return lines.text;
  }
  static bool follows(const test::HttpExchange& exchange) {
    return exchange.target.find("follow=true") != std::string::npos;
  }

  asio::io_context loop;
  test::HttpServer::Handler handler;
  test::HttpServer server{loop, [this](test::HttpExchange& exchange) { return handler(exchange); }};
};

TEST_F(TheLogOfAService, is_read_at_the_end_if_the_node_has_not_answered_by_then) {
  handler = [](test::HttpExchange& exchange) {
    return follows(exchange) ? exchange.hang() : exchange.answer(200, "serves\n");
  };
  EXPECT_EQ(log(), "[db] serves\n");
}

TEST_F(TheLogOfAService, is_read_at_the_end_if_the_node_has_refused_to_follow_it) {
  handler = [](test::HttpExchange& exchange) {
    return follows(exchange) ? exchange.answer(500, "too many open files")
                             : exchange.answer(200, "serves\nends");
  };
  EXPECT_EQ(log(), "[db] serves\n[db] ends\n");
}

TEST_F(TheLogOfAService, is_read_once_if_it_has_come) {
  handler = [](test::HttpExchange& exchange) -> async::Task<> {
    co_await exchange.begin_stream();
    co_await exchange.piece("serves\n");
    co_await exchange.hang();
  };
  EXPECT_EQ(log(), "[db] serves\n");
  EXPECT_EQ(server.asked.size(), 1u);
}

}  // namespace
}  // namespace pipeline::orchestrators::kubernetes

#include "kubernetes_api/client.hpp"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/file.hpp"
#include "net/url.hpp"
#include "support/http_server.hpp"
#include "support/run_task.hpp"

namespace pipeline::kubernetes_api {
namespace {

using nlohmann::json;
using test::HttpExchange;
using test::run_task;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr async::RetryPolicy hasty{std::chrono::milliseconds(1), std::chrono::milliseconds(2), 4};

std::string status(int code, const std::string& reason, const std::string& message) {
  return json{{"kind", "Status"}, {"code", code}, {"reason", reason}, {"message", message}}.dump();
}

class TheClient : public testing::Test {
 protected:
  Client client(async::RetryPolicy retry_policy = hasty) {
    ClusterAccess access;
    access.server = server.url();
    access.name_space = "ml";
    access.origin = "context 'test'";
    access.identity.token_file = token_file;
    return Client(loop, access, retry_policy);
  }
  json get(Client& who, const std::string& path = "/x") {
    return run_task(loop, who.get("read x", path));
  }

  asio::io_context loop;
  core::TemporaryFolder folder;
  std::filesystem::path token_file;
  test::HttpServer::Handler handler;
  test::HttpServer server{loop, [this](HttpExchange& exchange) { return handler(exchange); }};
};

TEST_F(TheClient, refusal_is_reported_with_the_servers_words_and_advice) {
  handler = [](HttpExchange& exchange) {
    return exchange.answer(403,
                           status(403, "Forbidden", "jobs.batch is forbidden: User \"u\" cannot"));
  };
  auto who = client();
  try {
    get(who);
    FAIL();
  } catch (const ApiError& error) {
    EXPECT_EQ(std::string(error.what()),
              "cannot read x: jobs.batch is forbidden: User \"u\" cannot");
    EXPECT_EQ(error.reason(), "Forbidden");
    EXPECT_EQ(error.status(), 403);
    EXPECT_THAT(error.advice().front(), HasSubstr("pipe kubernetes rbac"));
  }
  EXPECT_EQ(server.asked.size(), 1u);
}

TEST_F(TheClient, very_long_refusal_is_cut) {
  handler = [](HttpExchange& exchange) {
    return exchange.answer(403, status(403, "Forbidden", std::string(900'000, 'a')));
  };
  auto who = client();
  try {
    get(who);
    FAIL();
  } catch (const ApiError& error) {
    EXPECT_LT(std::string_view(error.what()).size(), 10'000u);
  }
}

TEST_F(TheClient, calls_are_repeated_a_limited_number_of_times_if_a_server_is_broken) {
  int left = 3;
  handler = [&](HttpExchange& exchange) -> async::Task<> {
    const int code = left == 0 ? 200 : left == 3 ? 503 : 429;
    std::string text = left == 0 ? "{\"ok\": true}" : status(code, "Any", "later");
    if (left-- == 2)
      exchange.cut();
    else
      co_await exchange.answer(code, std::move(text));
  };
  auto who = client();
  EXPECT_EQ(get(who)["ok"], true);
  EXPECT_EQ(server.asked.size(), 4u);
  left = 100;
  EXPECT_THROW(get(who), ApiError);
  EXPECT_EQ(server.asked.size(), 8u);
}

TEST_F(TheClient, warnings_of_the_server_are_shown_once) {
  handler = [](HttpExchange& exchange) {
    return exchange.answer(200, "{}",
                           "Warning: 299 - \"would violate PodSecurity "
                           "\\\"restricted:latest\\\"\"\r\nWarning: 299 - \"goes in 1.40\"\r\n");
  };
  auto who = client();
  testing::internal::CaptureStderr();
  get(who);
  get(who);
  const auto said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said,
              HasSubstr("the cluster warns: would violate PodSecurity \"restricted:latest\"\n"));
  EXPECT_THAT(said, HasSubstr("the cluster warns: goes in 1.40\n"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 2) << said;
}

TEST_F(TheClient, retry_after_is_obeyed) {
  bool first = true;
  handler = [&](HttpExchange& exchange) {
    return std::exchange(first, false) ? exchange.answer(429, "{}", "Retry-After: 1\r\n")
                                       : exchange.answer(200, "{}");
  };
  auto who = client();
  const auto begin = std::chrono::steady_clock::now();
  get(who);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

TEST_F(TheClient, missing_server_is_reported_with_advice) {
  ClusterAccess access;
  access.server = "http://127.0.0.1:1";
  access.origin = "context 'test'";
  Client who(loop, access, hasty);
  try {
    get(who);
    FAIL();
  } catch (const core::EnvironmentError& error) {
    EXPECT_THAT(
        error.what(),
        HasSubstr(
            "cannot reach the cluster of context 'test': cannot connect to http://127.0.0.1:1"));
    EXPECT_THAT(error.advice().front(), HasSubstr("kubectl get --raw /readyz"));
  }
}

TEST_F(TheClient, expired_token_is_read_again_once) {
  token_file = folder.path() / "token";
  std::ofstream(token_file) << "old";
  handler = [&](HttpExchange& exchange) -> async::Task<> {
    const bool good = exchange.headers.find("Bearer new") != std::string::npos;
    std::ofstream(token_file) << "new";
    std::string text = good ? "{}" : status(401, "Unauthorized", "Unauthorized");
    co_await exchange.answer(good ? 200 : 401, std::move(text));
  };
  auto who = client();
  get(who);
  EXPECT_EQ(server.asked.size(), 2u);
  handler = [](HttpExchange& exchange) {
    return exchange.answer(401, status(401, "Unauthorized", "Unauthorized"));
  };
  EXPECT_THROW(get(who), ApiError);
  EXPECT_EQ(server.asked.size(), 4u);
}

TEST_F(TheClient, deletion_names_the_object_by_its_uid_and_succeeds_if_it_is_gone) {
  std::string body;
  int code = 200;
  handler = [&](HttpExchange& exchange) {
    body = exchange.body;
    return exchange.answer(code, "{}");
  };
  auto who = client();
  run_task(loop, who.remove("delete j", who.path("batch/v1", "jobs", "j"), "uid-1", 5));
  EXPECT_THAT(server.asked, ElementsAre("DELETE /apis/batch/v1/namespaces/ml/jobs/j"));
  const auto sent = json::parse(body);
  EXPECT_EQ(sent["preconditions"]["uid"], "uid-1");
  EXPECT_EQ(sent["gracePeriodSeconds"], 5);
  EXPECT_EQ(sent["propagationPolicy"], "Background");
  for (const int gone : {404, 409}) {
    code = gone;
    run_task(loop, who.remove("delete j", who.path("", "pods", "j"), "uid-1", {}));
  }
  code = 403;
  EXPECT_THROW(run_task(loop, who.remove("delete j", who.path("", "pods", "j"), "uid-1", {})),
               ApiError);
}

TEST_F(TheClient, old_server_and_other_kinds_of_servers_are_refused) {
  std::string answer = R"({"major": "1", "minor": "19+", "gitVersion": "v1.19.7"})";
  handler = [&](HttpExchange& exchange) { return exchange.answer(200, answer); };
  const auto said = [&] {
    auto who = client();
    try {
      run_task(loop, who.version());
    } catch (const core::EnvironmentError& error) {
      return std::string(error.what());
    }
    return std::string("fine");
  };
  EXPECT_THAT(said(), HasSubstr("too old: it is Kubernetes v1.19.7, and 1.20 is needed"));
  answer = "<html>hello</html>";
  EXPECT_THAT(said(), HasSubstr("is not a Kubernetes API server"));
  answer = R"({"major": "1", "minor": "35"})";
  EXPECT_EQ(said(), "fine");
}

TEST_F(TheClient, server_whose_first_answer_is_invalid_is_asked_for_its_version_again) {
  int count = 0;
  handler = [&](HttpExchange& exchange) {
    return exchange.answer(++count < 8 ? 503 : 200, R"({"major": "1", "minor": "35"})");
  };
  auto who = client({hasty.first_pause, hasty.max_pause, 12});
  EXPECT_EQ(run_task(loop, who.version()), std::pair(1, 35));
}

TEST_F(TheClient, a_stop_of_the_run_ends_the_retries_of_a_call_without_its_own_cancellation) {
  core::CancelSource stop;
  handler = [&](HttpExchange& exchange) -> async::Task<> {
    if (server.asked.size() == 2)
      asio::post(loop, [&stop] { stop.stop(core::StopLevel::graceful); });
    exchange.cut();
    co_return;
  };
  auto who = client({std::chrono::milliseconds(1), std::chrono::milliseconds(2), 50});
  who.stop_calls_by(&stop);
  EXPECT_THROW(get(who), core::EnvironmentError);
  EXPECT_EQ(server.asked.size(), 2u);
}

TEST(KubernetesUrls, hosts_have_a_port) {
  EXPECT_EQ(host_and_port("https://a.b/path"), "a.b:443");
  EXPECT_EQ(host_and_port("http://a.b"), "a.b:80");
  EXPECT_EQ(host_and_port("https://[::1]:6443"), "[::1]:6443");
  EXPECT_EQ(host_and_port("https://[::1]"), "[::1]:443");
  EXPECT_EQ(net::url_encode("a b/ü=,"), "a%20b%2F%C3%BC%3D%2C");
}

TEST(Backoffs, grow_to_a_limit_with_some_chance) {
  async::Backoff backoff(
      async::RetryPolicy{std::chrono::milliseconds(800), std::chrono::milliseconds(30'000), 5}, 1);
  long long limit = 800;
  for (int i = 0; i < 12; ++i, limit = std::min(limit * 2, 30'000LL)) {
    EXPECT_EQ(backoff.exhausted(), i >= 4);
    const auto pause = backoff.next().count();
    EXPECT_GE(pause, limit / 2);
    EXPECT_LE(pause, limit);
  }
  EXPECT_GE(backoff.next(std::chrono::seconds(60)), std::chrono::seconds(60));
  EXPECT_EQ(backoff.next(std::chrono::seconds(2'147'483'647)), std::chrono::minutes(5));
}

TEST(Backoffs, of_a_short_wait_end_after_a_few_tries_without_an_answer_or_some_time) {
  async::Backoff backoff(async::RetryPolicy{}.for_short_wait(2));
  EXPECT_FALSE(backoff.exhausted());
  backoff.count_unanswered();
  EXPECT_FALSE(backoff.exhausted());
  backoff.count_unanswered();
  EXPECT_TRUE(backoff.exhausted());
  auto policy = async::RetryPolicy{}.for_short_wait(2);
  policy.max_time = {};
  EXPECT_TRUE(async::Backoff(policy).exhausted());
}

}  // namespace
}  // namespace pipeline::kubernetes_api

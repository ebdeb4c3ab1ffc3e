// Secrets on a cluster belong to their Job from the moment they are there, so that none is left
// behind.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orchestrators/kubernetes/driver.hpp"
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
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::string refusal(const std::string& message) {
  return json{{"kind", "Status"}, {"code", 403}, {"reason", "Forbidden"}, {"message", message}}
      .dump();
}

/// An API server that takes what it is given, but for the kinds that are refused.
class ClusterSecrets : public testing::Test {
 protected:
  async::Task<> answer(HttpExchange& exchange) {
    const auto path = exchange.target.substr(0, exchange.target.find('?'));
    const auto kind = path.substr(path.find("/namespaces/ml/") + 15);  // `jobs`, `jobs/NAME`
    if (std::ranges::any_of(refused, [&](const auto& each) {
          return each == exchange.method + " " + kind.substr(0, kind.find('/'));
        }))
      co_return co_await exchange.answer(403, refusal(kind + " is forbidden: not for you"));
    if (exchange.target.find("watch=") != std::string::npos) co_return co_await exchange.hang();
    if (exchange.method == "POST") {
      auto object = json::parse(exchange.body);
      object["metadata"]["uid"] = "uid-1";
      made.push_back(object);
      co_return co_await exchange.answer(201, object.dump());
    }
    if (exchange.method == "GET" && kind.find('/') != std::string::npos)
      co_return co_await exchange.answer(200, R"({"metadata": {"uid": "uid-1"}})");
    co_await exchange.answer(200, R"({"items": [], "metadata": {"resourceVersion": "1"}})");
  }
  kubernetes_api::Client client() {
    kubernetes_api::ClusterAccess access;
    access.server = server.url();
    access.name_space = "ml";
    return kubernetes_api::Client(loop, access,
                                  {std::chrono::milliseconds(1), std::chrono::milliseconds(2), 2});
  }
  std::string failure_of_run() {
    AttemptBuilder builder(test::shell("true"));
    builder.secrets["TOKEN"] = "hush";
    auto who = client();
    JobOptions place;
    place.user = "1000:100";
    Removals removals;
    std::string failure;
    try {
      run_task(loop, run(who, builder.attempt(), place, removals));
    } catch (const core::EnvironmentError& error) {
      failure = error.what();
    }
    return failure;
  }
  static async::Task<AttemptResult> run(kubernetes_api::Client& who, const Attempt& attempt,
                                        const JobOptions& place, Removals& removals) {
    JobInformer informer(who, "x");
    co_await informer.ready(attempt.io.cancel);
    AgentReport report;
    const JobContext context{who, informer, removals, report};
    auto result = co_await run_job(context, attempt, place);
    co_return result;
  }

  asio::io_context loop;
  std::vector<std::string> refused;
  std::vector<json> made;
  test::HttpServer server{loop, [this](HttpExchange& exchange) { return answer(exchange); }};
};

TEST_F(ClusterSecrets, none_is_made_when_the_job_is_refused) {
  refused = {"POST jobs"};
  EXPECT_THAT(failure_of_run(), HasSubstr("cannot create the Job"));
  EXPECT_TRUE(made.empty());
}

TEST_F(ClusterSecrets,
       the_job_is_removed_when_its_secret_is_refused_and_the_first_error_is_reported) {
  refused = {"POST secrets", "DELETE jobs"};
  EXPECT_THAT(failure_of_run(), HasSubstr("cannot create the Secret"));
  EXPECT_THAT(server.asked, Contains(HasSubstr("DELETE /apis/batch/v1/namespaces/ml/jobs/")));
}

TEST_F(ClusterSecrets, a_drivers_secret_is_owned_by_its_job_from_the_start) {
  DriverJob driver;
  driver.run_id = "r1";
  driver.user = "1000:100";
  driver.variables["TOKEN"] = "hush";
  auto who = client();
  run_task(loop, start_driver(who, driver));
  ASSERT_EQ(made.size(), 3U);
  EXPECT_EQ(made[0]["kind"], "Job");
  EXPECT_EQ(made[1]["kind"], "Secret");
  EXPECT_EQ(made[1]["metadata"]["ownerReferences"][0]["uid"], "uid-1");
}

TEST_F(ClusterSecrets,
       a_driver_whose_secret_is_refused_is_removed_and_the_first_error_is_reported) {
  refused = {"POST secrets", "DELETE jobs"};
  DriverJob driver;
  driver.run_id = "r1";
  driver.user = "1000:100";
  driver.variables["TOKEN"] = "hush";
  auto who = client();
  std::string failure;
  try {
    run_task(loop, start_driver(who, driver));
  } catch (const core::EnvironmentError& error) {
    failure = error.what();
  }
  EXPECT_THAT(failure, HasSubstr("cannot create the Secret"));
  EXPECT_THAT(server.asked, Contains(HasSubstr("DELETE /apis/batch/v1/namespaces/ml/jobs/")));
  EXPECT_THAT(server.asked, Not(Contains(HasSubstr("DELETE /api/v1/namespaces/ml/secrets"))));
}

}  // namespace
}  // namespace pipeline::orchestrators::kubernetes

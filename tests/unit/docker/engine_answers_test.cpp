// Responses of an engine that differ from its API.
#include <algorithm>
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/steady_timer.hpp>

#include "docker/engine_api.hpp"
#include "docker/raw_stream.hpp"
#include "support/http_server.hpp"
#include "support/run_task.hpp"
#include "support/server_endpoint.hpp"

namespace pipeline::test {
namespace {

using docker::EngineApi;
using testing::HasSubstr;

class EngineAnswers : public testing::Test {
 protected:
  EngineAnswers() { api_.emplace(loop_, endpoint_of(engine_)); }
  /// Returns why the call failed, if it was one of the environment.
  template <class Result>
  std::string failure_of(std::string answer, const std::function<async::Task<Result>()>& call) {
    answer_ = std::move(answer);
    try {
      run_task(loop_, call());
    } catch (const core::EnvironmentError& error) {
      return error.what();
    }
    return "none";
  }

  asio::io_context loop_;
  std::string answer_, refusal_;
  bool is_broken_ = false;  ///< Responds with 500 once its version is known.
  HttpServer engine_{loop_, [this](HttpExchange& call) {
                       const bool is_version = call.target == "/version";
                       if (is_broken_ && !is_version && call.target != "/_ping")
                         return call.answer(500, R"({"message": "try later"})");
                       if (!refusal_.empty() && call.method == "POST")
                         return call.answer(400, refusal_);
                       return call.answer(200, is_version ? R"({"ApiVersion": "1.45"})" : answer_);
                     }};
  std::optional<EngineApi> api_;
};

TEST_F(EngineAnswers, without_an_id_are_failures_of_the_environment) {
  for (const std::string answer : {"[]", "null", "5", "{}", R"({"Id": 5})", R"({"Id": ""})"}) {
    EXPECT_THAT(failure_of<std::string>(answer,
                                        [&] {
                                          return api_->create_container("c", {{"Image", "i"}}, {});
                                        }),
                HasSubstr("cannot create the container c: the engine's answer has no Id"))
        << answer;
    EXPECT_THAT(
        failure_of<std::optional<nlohmann::json>>(answer, [&] { return api_->inspect_image("i"); }),
        HasSubstr("cannot look up the image i: the engine's answer has no Id"))
        << answer;
    EXPECT_THAT(failure_of<std::vector<nlohmann::json>>(
                    "[" + answer + "]", [&] { return api_->list_containers({"l"}); }),
                HasSubstr("cannot list the containers: the engine's answer has no Id"))
        << answer;
    EXPECT_THAT(failure_of<docker::ExecStream>(
                    answer, [&] { return docker::start_exec(*api_, "c", {"sh"}, false); }),
                HasSubstr("cannot start a command in the container c: the engine's answer has no "
                          "Id"))
        << answer;
  }
}

TEST_F(EngineAnswers, of_500_to_a_call_and_to_its_look_up_mean_a_lost_engine_and_not_a_refusal) {
  is_broken_ = true;
  try {
    run_task(loop_, api_->create_container("c", {{"Image", "i"}}, {}));
    ADD_FAILURE() << "the container is there";
  } catch (const net::TransportError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot create the container c: try later; cannot look up "
                                        "the container c: try later"));
  }
  EXPECT_EQ(std::ranges::count_if(
                engine_.asked, [](const std::string& each) { return each.starts_with("POST "); }),
            1);
}

TEST_F(EngineAnswers, about_a_command_that_still_runs_are_asked_for_again) {
  answer_ = R"({"ExitCode": null, "Running": true})";
  asio::steady_timer end(loop_, std::chrono::milliseconds(50));
  end.async_wait(
      [this](boost::system::error_code) { answer_ = R"({"ExitCode": 3, "Running": false})"; });
  EXPECT_EQ(run_task(loop_, docker::exec_code(*api_, "e")), 3);
  answer_ = R"({"ExitCode": null, "Running": false})";
  EXPECT_EQ(run_task(loop_, docker::exec_code(*api_, "e")), -1)
      << "a missing exit code is not a success";
}

TEST_F(EngineAnswers, about_a_program_in_a_container_have_both_of_its_outputs) {
  nlohmann::json request;
  HttpServer engine(loop_, [&](HttpExchange& call) -> async::Task<> {
    std::string answer = R"({"ApiVersion": "1.45"})";
    if (call.target.ends_with("/exec")) {
      request = nlohmann::json::parse(call.body);
      answer = R"({"Id": "e"})";
    }
    if (call.target.ends_with("/start"))
      answer = std::string("\1\0\0\0\0\0\0\4out\n", 12) + std::string("\2\0\0\0\0\0\0\4err\n", 12);
    if (call.target.ends_with("/json")) answer = R"({"ExitCode": 3, "Running": false})";
    co_await call.answer(200, answer);
  });
  EngineApi api(loop_, endpoint_of(engine));
  std::string printed[2];
  const std::function<void(bool, std::string_view)> keep =
      [&](bool is_stderr, std::string_view bytes) { printed[is_stderr] += bytes; };
  EXPECT_EQ(run_task(loop_, api.run_in_container("c", {"check"}, keep)), 3);
  EXPECT_EQ(printed[0], "out\n");
  EXPECT_EQ(printed[1], "err\n");
  EXPECT_TRUE(request.value("AttachStdout", false) && request.value("AttachStderr", false))
      << request;
}

TEST_F(EngineAnswers, that_refuse_with_a_very_long_text_are_cut) {
  refusal_ = R"({"message": ")" + std::string(900'000, 'a') + R"("})";
  const auto failure = failure_of<std::string>("{}", [&] {
    return api_->create_container("c", {{"Image", "i"}}, {});
  });
  EXPECT_THAT(failure, HasSubstr("cannot create the container c: aaaa"));
  EXPECT_LT(failure.size(), 10'000u);
}

TEST_F(EngineAnswers, with_invalid_events_are_passed_over) {
  for (const std::string answer : {"[]", R"({"Action": 5})"}) {
    answer_ = answer + "\n";
    EXPECT_FALSE(run_task(loop_, api_->saw_own_end("0123456789abcdef"))) << answer;
  }
}

TEST_F(EngineAnswers, that_never_come_are_waited_for_until_the_run_is_stopped) {
  for (const std::string kind : {"cut", "hang"}) {
    core::CancelSource run;
    int looked = 0;
    HttpServer engine(loop_, [&](HttpExchange& call) -> async::Task<> {
      if (call.target == "/version" || call.target == "/_ping") {
        co_await call.answer(200, R"({"ApiVersion": "1.45"})");
        co_return;
      }
      ++looked;
      const bool is_second = looked == 2 || kind == "hang";
      if (is_second) asio::post(loop_, [&run] { run.stop(core::StopLevel::graceful); });
      if (kind == "hang") co_await call.hang();
      call.cut();
    });
    EngineApi api(loop_, endpoint_of(engine), {}, &run);
    EXPECT_THROW(run_task(loop_, api.inspect_image("i")), net::TransportError) << kind;
    EXPECT_EQ(looked, kind == "cut" ? 2 : 1) << kind;
    EXPECT_NE(run.level(), core::StopLevel::none) << kind;
  }
}

TEST_F(EngineAnswers, to_the_first_ping_are_waited_for_until_the_run_is_stopped) {
  core::CancelSource run;
  HttpServer engine(loop_, [&](HttpExchange& call) -> async::Task<> {
    asio::post(loop_, [&run] { run.stop(core::StopLevel::graceful); });
    co_await call.hang();
  });
  EngineApi api(loop_, endpoint_of(engine), {}, &run);
  EXPECT_THROW(run_task(loop_, api.info()), core::EnvironmentError);
  EXPECT_EQ(engine.asked, std::vector<std::string>{"GET /_ping"});
}

TEST_F(EngineAnswers, to_an_upgrade_that_never_come_are_given_up) {
  for (const std::string kind : {"silent", "no head", "no end", "refusal"}) {
    HttpServer engine(loop_, [&](HttpExchange& call) -> async::Task<> {
      if (call.target == "/version" || call.target == "/_ping") {
        co_await call.answer(200, R"({"ApiVersion": "1.45"})");
        co_return;
      }
      if (kind == "no head") co_await call.write("HTTP/1.1 101 UPGRADED\r\nX: ");
      if (kind == "no end")
        co_await call.write("HTTP/1.1 101 UPGRADED\r\nX: " + std::string(100'000, 'x'));
      if (kind == "refusal") co_await call.answer(404, "");
      co_await call.hang();
    });
    docker::EngineLimits limits;
    limits.answer = std::chrono::milliseconds(500);
    EngineApi api(loop_, endpoint_of(engine), limits);
    try {
      run_task(loop_, docker::attach_raw(api, "0123456789abcdef"));
      ADD_FAILURE() << kind;
    } catch (const core::EnvironmentError& error) {
      EXPECT_THAT(error.what(), HasSubstr("cannot attach to the container 0123456789ab: ")) << kind;
      EXPECT_THAT(error.what(),
                  HasSubstr(kind == "refusal"  ? "404"
                            : kind == "no end" ? "too long"
                                               : "the engine did not respond in time"));
    }
  }
}

}  // namespace
}  // namespace pipeline::test

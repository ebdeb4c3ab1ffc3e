#include "docker/engine_api.hpp"

#include <random>

#include <gtest/gtest.h>

#include "async/joinable_task.hpp"
#include "docker/engine_connection.hpp"
#include "support/podman.hpp"

namespace pipeline::docker {
namespace {

class EngineApiTest : public testing::Test {
 protected:
  void await(async::Task<> task) {
    std::exception_ptr failure;
    asio::co_spawn(loop_, std::move(task), [&](std::exception_ptr error) { failure = error; });
    loop_.restart();
    loop_.run();
    if (failure) std::rethrow_exception(failure);
  }
  /// Returns the status of the task's error, and its message with the advice.
  std::pair<long, std::string> failure(async::Task<> task) {
    try {
      await(std::move(task));
    } catch (const EngineError& error) {
      return {error.status(), std::string(error.what()) +
                                  (error.advice().empty() ? "" : " / " + error.advice()[0])};
    }
    return {0, "no error"};
  }

  std::string unique_ = "pipe-test-" + std::to_string(std::random_device{}());
  asio::io_context loop_;
  EngineApi engine_{loop_, find_endpoint()};
  core::CancelSource cancel_;
};

TEST_F(EngineApiTest, errors_say_what_was_tried_what_came_back_and_what_to_do) {
  const auto [status, text] = failure(engine_.start_container("no-such-" + unique_));
  EXPECT_EQ(status, 404);
  const auto container = "no-such-" + unique_;
  EXPECT_EQ(text, "cannot start the container " + container.substr(0, 12) + ": " +  // As an ID.
                      (test::is_podman() ? "no container with name or ID \"" + container +
                                               "\" found: no such container"
                                         : "No such container: " + container));
  nlohmann::json body;
  body["Image"] = unique_ + ":none";
  const auto [created, missing] =
      failure([](EngineApi& engine, std::string name, nlohmann::json description) -> async::Task<> {
        co_await engine.create_container(name, description);
      }(engine_, unique_, body));
  EXPECT_EQ(created, 404);
  EXPECT_NE(missing.find(test::is_podman() ? "no such image: docker.io/library/" + unique_ + ":none"
                                           : "No such image: " + unique_ + ":none"),
            std::string::npos)
      << missing;
  EXPECT_NE(missing.find(" / check the image's name"), std::string::npos) << missing;
}

TEST_F(EngineApiTest, a_reference_is_never_a_way_to_another_part_of_the_api) {
  EXPECT_NE(failure(engine_.remove_image("../containers/" + unique_)).first, 0);
  EXPECT_NE(failure(engine_.remove_image("x?force=1&y=" + unique_)).first, 0);
}

TEST_F(EngineApiTest, a_value_that_is_not_utf8_is_refused) {
  nlohmann::json body;
  body["Image"] = "\xff";
  EXPECT_THROW(await([](EngineApi& engine, nlohmann::json description) -> async::Task<> {
                 co_await engine.create_container("x", description);
               }(engine_, body)),
               core::EnvironmentError);
}

TEST_F(EngineApiTest, the_version_is_negotiated_once_for_all_calls) {
  int same = 0;
  const EngineInfo* first = nullptr;
  for (int i = 0; i < 50; ++i)
    asio::co_spawn(loop_, engine_.info(), [&](std::exception_ptr error, const EngineInfo* info) {
      if (!first) first = info;
      same += !error && info == first;
    });
  loop_.run();
  EXPECT_EQ(same, 50);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->os, "linux");
  EXPECT_TRUE(first->api_version.starts_with("1."));
  EXPECT_FALSE(first->version.empty());
}

TEST_F(EngineApiTest, inspecting_a_missing_image_is_not_an_error) {
  await([](EngineApi& engine, std::string name) -> async::Task<> {
    const auto missing = co_await engine.inspect_image(name);
    EXPECT_FALSE(missing);
    const auto image = co_await engine.inspect_image("debian:bookworm-slim");
    EXPECT_TRUE(image && image->contains("Id"));
    const auto info = co_await engine.system_info();
    EXPECT_TRUE(info.contains("ServerVersion"));
    const auto usage = co_await engine.disk_usage();
    EXPECT_TRUE(usage.contains("Images"));
  }(engine_, unique_));
}

TEST_F(EngineApiTest, an_image_is_tagged_and_the_tag_removed) {
  await([](EngineApi& engine, std::string name) -> async::Task<> {
    co_await engine.tag_image("debian:bookworm-slim", name, "one");
    EXPECT_TRUE(co_await engine.inspect_image(name + ":one"));
    co_await engine.remove_image(name + ":one");
    EXPECT_FALSE(co_await engine.inspect_image(name + ":one"));
  }(engine_, unique_));
}

TEST_F(EngineApiTest, a_container_is_created_started_followed_stopped_and_removed) {
  await([](asio::io_context& loop, EngineApi& engine, std::string name) -> async::Task<> {
    nlohmann::json body;
    body["Image"] = "debian:bookworm-slim";
    body["Cmd"] = nlohmann::json::array({"sh", "-c", "echo out; echo err >&2; sleep 600"});
    body["Labels"][name] = "x";
    body["HostConfig"]["NetworkMode"] = "none";
    body["HostConfig"]["Init"] = true;
    const auto id = co_await engine.create_container(name, body);
    std::string out, err;
    int code = -1;
    async::JoinableTask logs(loop.get_executor(),
                             [](EngineApi& api, std::string container, std::string& to_out,
                                std::string& to_err) -> async::Task<> {
                               const std::function<void(bool, std::string_view)> take =
                                   [&](bool is_stderr, std::string_view bytes) {
                                     (is_stderr ? to_err : to_out) += bytes;
                                   };
                               co_await api.start_container(container);
                               co_await api.start_container(container);  // It runs already.
                               co_await api.follow_logs(container, take);
                             }(engine, id, out, err));
    async::JoinableTask end(
        loop.get_executor(),
        [](EngineApi& api, std::string container, int& exit_code) -> async::Task<> {
          exit_code = co_await api.wait_container(container, "next-exit");
        }(engine, id, code));
    asio::steady_timer pause(loop);
    while (out.empty() || err.empty()) {
      pause.expires_after(std::chrono::milliseconds(10));
      co_await pause.async_wait(asio::use_awaitable);
    }
    const auto running = co_await engine.inspect_container(id);
    EXPECT_TRUE(running.running);
    std::vector<std::string> labels;
    labels.push_back(name);
    EXPECT_EQ((co_await engine.list_containers(labels)).size(), 1U);
    co_await engine.stop_container(id, 10);
    co_await end.join();
    co_await logs.join();
    EXPECT_EQ(out, "out\n");
    EXPECT_EQ(err, "err\n");
    EXPECT_EQ(code, 143);
    const auto ended = co_await engine.inspect_container(id);
    EXPECT_FALSE(ended.running);
    EXPECT_EQ(ended.exit_code, 143);
    co_await engine.remove_container(id);
    co_await engine.remove_container(id);  // It was removed already.
    EXPECT_TRUE((co_await engine.list_containers(labels)).empty());
  }(loop_, engine_, unique_));
}

TEST_F(EngineApiTest, a_failed_pull_names_the_image_and_a_cancelled_one_ends) {
  const auto pull = [](EngineApi& engine, std::string reference,
                       core::CancelSource& cancel) -> async::Task<> {
    const std::function<void(std::string_view)> ignore = [](std::string_view) {};
    co_await engine.pull_image(reference, "", "", ignore, cancel);
  };
  const auto [status, text] = failure(pull(engine_, "127.0.0.1:1/" + unique_ + ":x", cancel_));
  EXPECT_NE(status, 0);
  EXPECT_NE(text.find("cannot pull the image 127.0.0.1:1/" + unique_ + ":x: "), std::string::npos)
      << text;
  cancel_.stop(core::StopLevel::graceful);
  EXPECT_THROW(await(pull(engine_, "127.0.0.1:1/" + unique_ + ":x", cancel_)), net::TransportError);
}

}  // namespace
}  // namespace pipeline::docker

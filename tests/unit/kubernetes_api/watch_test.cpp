#include "kubernetes_api/watch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kubernetes_api/json.hpp"
#include "support/http_server.hpp"
#include "support/run_task.hpp"

namespace pipeline::kubernetes_api {
namespace {

using nlohmann::json;
using test::HttpExchange;
using test::run_task;
using testing::ElementsAre;
using testing::HasSubstr;

json object(const std::string& name, const std::string& uid, int version) {
  return {
      {"metadata", {{"name", name}, {"uid", uid}, {"resourceVersion", std::to_string(version)}}}};
}
std::string event(const std::string& type, const json& what) {
  return json{{"type", type}, {"object", what}}.dump() + "\n";
}
json list(int version, std::vector<json> items) {
  return {{"metadata", {{"resourceVersion", std::to_string(version)}}},
          {"items", std::move(items)}};
}

/// A server whose lists and streams are scripts, each used once; after the last stream the watch is
/// stopped.
class TheWatch : public testing::Test {
 protected:
  using Stream = std::function<async::Task<>(HttpExchange&)>;

  async::Task<> serve(HttpExchange& exchange) {
    if (exchange.target.find("watch=true") == std::string::npos) {
      const auto page = lists.at(std::min(listed++, lists.size() - 1));
      co_await exchange.answer(page.value("code", 200), page.dump());
    } else if (streamed < streams.size()) {
      const auto stream = streams[streamed++];
      co_await stream(exchange);
    } else {
      cancel.stop(core::StopLevel::graceful);
    }
  }
  /// The reported changes, one text each: `added a 1`.
  std::vector<std::string> run() {
    ClusterAccess access;
    access.server = server.url();
    access.origin = "context 'test'";
    Client client(loop, access, policy);
    std::vector<std::string> changes;
    Watch watch(client, "/pods", "pipe.run=1", [&](const Change& change) {
      const char* words[] = {"added", "modified", "deleted"};
      changes.push_back(std::string(words[static_cast<int>(change.kind)]) + " " +
                        text_at(change.object, "/metadata/name") + " " +
                        text_at(change.object, "/metadata/uid"));
    });
    run_task(loop, watch.run(cancel, [&] { changes.push_back("listed"); }));
    return changes;
  }
  static Stream events(std::vector<std::string> texts) {
    return [texts](HttpExchange& exchange) -> async::Task<> {
      co_await exchange.begin_stream();
      for (const auto& text : texts) co_await exchange.piece(text);
      co_await exchange.end_stream();
    };
  }

  asio::io_context loop;
  core::CancelSource cancel;
  async::RetryPolicy policy{std::chrono::milliseconds(1), std::chrono::milliseconds(2), 4};
  std::vector<json> lists;
  std::vector<Stream> streams;
  std::size_t listed = 0, streamed = 0;
  test::HttpServer server{loop, [this](HttpExchange& exchange) { return serve(exchange); }};
};

TEST_F(TheWatch, refusal_for_good_ends_it) {
  lists = {{{"code", 403}, {"message", "pods is forbidden"}}};
  EXPECT_THROW(run(), ApiError);
}

TEST_F(TheWatch, server_that_never_answers_ends_it) {
  lists = {list(1, {})};
  streams.assign(20, [](HttpExchange& exchange) -> async::Task<> {
    exchange.cut();
    co_return;
  });
  EXPECT_THROW(run(), net::TransportError);
}

TEST_F(TheWatch, stream_that_the_server_never_opens_is_asked_for_again) {
  setenv("PIPE_SERVER_TIMEOUT", "1s", 1);
  lists = {list(7, {})};
  streams = {[](HttpExchange& exchange) { return exchange.hang(); },
             // Once open, a stream may be silent for longer.
             [](HttpExchange& exchange) -> async::Task<> {
               co_await exchange.begin_stream();
               asio::steady_timer timer(co_await asio::this_coro::executor,
                                        std::chrono::milliseconds(1500));
               co_await timer.async_wait(asio::use_awaitable);
               co_await exchange.piece(event("ADDED", object("a", "1", 8)));
               co_await exchange.end_stream();
             }};
  EXPECT_THAT(run(), ElementsAre("listed", "added a 1"));
  EXPECT_EQ(server.asked.size(), 4u);
  unsetenv("PIPE_SERVER_TIMEOUT");
}

TEST_F(TheWatch, stream_that_ends_as_soon_as_it_has_begun_is_not_asked_for_again_at_once) {
  policy = {std::chrono::hours(1), std::chrono::hours(1), 4};
  lists = {list(7, {})};
  for (const std::string text : {" ", "[]\n", "null\n"}) {
    server.asked.clear();
    streamed = 0;
    cancel.rearm();
    streams = {[&](HttpExchange& exchange) -> async::Task<> {
      const auto stream = events({text});
      co_await stream(exchange);
      asio::steady_timer timer(co_await asio::this_coro::executor, std::chrono::milliseconds(200));
      co_await timer.async_wait(asio::use_awaitable);
      cancel.stop(core::StopLevel::graceful);
    }};
    run();
    EXPECT_EQ(server.asked.size(), 2u) << text;
  }
}

TEST_F(TheWatch, event_that_is_longer_than_any_object_is_passed_over) {
  lists = {list(7, {})};
  auto large = object("a", "1", 8);
  large["spec"] = std::string(5 << 20, 'x');
  streams = {events({event("ADDED", large), event("ADDED", object("b", "2", 9))})};
  EXPECT_THAT(run(), ElementsAre("listed", "added b 2"));
}

TEST_F(TheWatch, begins_where_the_list_ended_and_goes_on_where_the_stream_did) {
  lists = {list(7, {object("a", "1", 3)})};
  streams = {
      events(
          {event("ADDED", object("b", "2", 8)) + event("MODI", object("x", "x", 1)).substr(0, 9),
           event("MODI", object("x", "x", 1)).substr(9) + event("MODIFIED", object("a", "1", 9))}),
      events({event("BOOKMARK", {{"metadata", {{"resourceVersion", "40"}}}})}),
      events({event("DELETED", object("a", "1", 41))})};
  EXPECT_THAT(run(),
              ElementsAre("added a 1", "listed", "added b 2", "modified a 1", "deleted a 1"));
  ASSERT_EQ(server.asked.size(), 5u);
  EXPECT_THAT(server.asked[0], HasSubstr("labelSelector=pipe.run%3D1"));
  EXPECT_THAT(server.asked[1], HasSubstr("resourceVersion=7"));
  EXPECT_THAT(server.asked[2], HasSubstr("resourceVersion=9"));
  EXPECT_THAT(server.asked[3], HasSubstr("resourceVersion=40"));
  EXPECT_THAT(server.asked[4], HasSubstr("resourceVersion=41"));
}

TEST_F(TheWatch, changes_of_a_lost_history_are_found_by_the_next_list) {
  lists = {list(5, {object("stays", "1", 1), object("changes", "2", 2), object("goes", "3", 3),
                    object("replaced", "4", 4)}),
           list(50, {object("stays", "1", 1), object("changes", "2", 20),
                     object("replaced", "5", 30), object("comes", "6", 40)})};
  streams = {events({event(
      "ERROR", {{"code", 410}, {"reason", "Expired"}, {"message", "too old resource version"}})})};
  EXPECT_THAT(run(),
              ElementsAre("added stays 1", "added changes 2", "added goes 3", "added replaced 4",
                          "listed", "modified changes 2", "deleted replaced 4", "added replaced 5",
                          "added comes 6", "deleted goes 3"));
  EXPECT_THAT(server.asked.back(), HasSubstr("resourceVersion=50"));
}

TEST_F(TheWatch, cut_within_a_line_loses_nothing) {
  lists = {list(1, {})};
  streams = {[](HttpExchange& exchange) -> async::Task<> {
               co_await exchange.begin_stream();
               co_await exchange.piece(event("ADDED", object("a", "1", 2)) +
                                       event("ADDED", object("b", "2", 3)).substr(0, 20));
               exchange.cut();
             },
             events({event("ADDED", object("b", "2", 3))})};
  EXPECT_THAT(run(), ElementsAre("listed", "added a 1", "added b 2"));
  EXPECT_EQ(listed, 1u);
}

TEST_F(TheWatch, long_list_comes_in_pages) {
  auto first = list(3, {object("a", "1", 1)});
  first["metadata"]["continue"] = "to ken";
  lists = {first, list(3, {object("b", "2", 2)})};
  EXPECT_THAT(run(), ElementsAre("added a 1", "added b 2", "listed"));
  EXPECT_THAT(server.asked[1], HasSubstr("&continue=to%20ken"));
}

TEST_F(TheWatch, list_whose_second_page_is_refused_for_a_while_is_made_again) {
  auto first = list(3, {object("a", "1", 1)});
  first["metadata"]["continue"] = "token";
  const json refused{{"code", 503}, {"message", "overloaded"}};
  lists = {first, refused, refused, refused, refused, first, list(3, {object("b", "2", 2)})};
  EXPECT_THAT(run(), ElementsAre("added a 1", "added b 2", "listed"));
  EXPECT_EQ(listed, lists.size());
  EXPECT_THAT(server.asked.back(), HasSubstr("resourceVersion=3"));
}

TEST_F(TheWatch, list_that_names_its_own_page_as_the_next_one_is_an_error) {
  auto page = list(3, {object("a", "1", 1)});
  page["metadata"]["continue"] = "token";
  lists = {page, page, page};
  EXPECT_THROW(run(), core::EnvironmentError);
  EXPECT_EQ(listed, 2u);
}

}  // namespace
}  // namespace pipeline::kubernetes_api

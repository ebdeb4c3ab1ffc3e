#include "fetch/transfer.hpp"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/http_server.hpp"
#include "support/run_task.hpp"

namespace pipeline::fetch {
namespace {

using test::HttpExchange;
using test::run_task;
using testing::HasSubstr;
using testing::Not;

/// A server of one content, whose answers a test may change.
class ATransfer : public testing::Test {
 protected:
  ATransfer() {
    for (std::size_t i = 0; i < content.size(); ++i)
      content[i] = static_cast<char>((i * 2654435761u) >> 24);
  }

  async::Task<> serve(HttpExchange& exchange) {
    const auto at = exchange.headers.find("bytes=");
    auto begin = std::uint64_t{0}, end = std::uint64_t{content.size()};
    if (at != std::string::npos && has_ranges) {
      char* rest = nullptr;
      begin = std::strtoull(exchange.headers.c_str() + at + 6, &rest, 10);
      end = std::min<std::uint64_t>(end, std::strtoull(rest + 1, nullptr, 10) + 1);
    }
    begins.push_back(begin);
    auto headers = "ETag: " + etag + "\r\n";
    if (at == std::string::npos || !has_ranges)
      return exchange.answer(200, content, std::move(headers));
    headers += "Content-Range: bytes " + std::to_string(begin + shift) + "-" +
               std::to_string(end - 1) + "/" + std::to_string(content.size()) + "\r\n";
    return exchange.answer(206, content.substr(begin, end - begin), std::move(headers));
  }

  std::string fetch(const Expected& expected) {
    const auto path = folder.path() / "x";
    const auto address = address_of(server.url() + "/data", "");
    Sources sources(loop, {});
    PartFile part(path, expected.is_verified);
    part.load();
    core::CancelSource stop;
    DataTransfer transfer(sources, address, expected, part, stop);
    std::string error;
    try {
      run_task(loop, transfer.run());
    } catch (const core::EnvironmentError& refused) {
      error = refused.what();
      advice = refused.advice();
    }
    return error.empty() ? core::read_file(path) : error;
  }

  std::string content = std::string((20 << 20) + 7, ' ');
  std::string etag = "\"1\"";
  bool has_ranges = true;
  std::uint64_t shift = 0;
  std::vector<std::uint64_t> begins;
  std::vector<std::string> advice;  ///< Of the last error of fetch().
  core::TemporaryFolder folder;
  asio::io_context loop;
  test::HttpServer::Handler handler = [this](HttpExchange& exchange) { return serve(exchange); };
  test::HttpServer server{loop, [this](HttpExchange& exchange) { return handler(exchange); }};
};

TEST_F(ATransfer, gets_each_byte_once_by_ranges) {
  EXPECT_EQ(fetch({.size = content.size(), .state = {.etag = etag}}), content);
  std::ranges::sort(begins);
  EXPECT_EQ(begins, (std::vector<std::uint64_t>{0, 8 << 20, 16 << 20}));
}

TEST_F(ATransfer, of_unknown_size_and_without_ranges_is_one_request) {
  has_ranges = false;
  EXPECT_EQ(fetch({.is_verified = true}), content);
  EXPECT_EQ(begins.size(), 1u);
}

TEST_F(ATransfer, does_not_mix_two_contents) {
  handler = [this](HttpExchange& exchange) {
    if (!begins.empty()) etag = "\"2\"";
    return serve(exchange);
  };
  EXPECT_THAT(fetch({.size = content.size(), .state = {.etag = "\"1\""}}),
              HasSubstr("changes while it is fetched"));
  EXPECT_EQ(std::filesystem::file_size(folder.path() / "x"), 0u);
}

TEST_F(ATransfer, of_another_size_is_refused_before_its_bytes) {
  EXPECT_THAT(fetch({.size = 5, .is_verified = true}),
              HasSubstr("has changed at the source since it was locked"));
  EXPECT_THAT(advice, testing::ElementsAre(HasSubstr("`pipe lock --upgrade INPUT`")));
}

TEST_F(ATransfer, accepts_no_other_range_than_requested) {
  handler = [this](HttpExchange& exchange) {
    shift = begins.empty() ? 0 : 1;
    return serve(exchange);
  };
  EXPECT_EQ(fetch({.is_verified = true}), content) << "the content is read as a whole then";
}

TEST_F(ATransfer, accepts_a_weak_etag_beside_the_strong_one) {
  handler = [this](HttpExchange& exchange) {
    etag = begins.empty() ? "\"1\"" : "W/\"1\"";
    return serve(exchange);
  };
  EXPECT_EQ(fetch({.size = content.size(), .state = {.etag = "\"1\""}}), content);
}

TEST_F(ATransfer, without_a_length_that_is_cut_is_requested_again) {
  handler = [this](HttpExchange& exchange) -> async::Task<> {
    begins.push_back(0);
    std::string text = "HTTP/1.1 200 OK\r\nETag: \"1\"\r\n\r\n";
    text.append(content, 0, begins.size() == 1 ? 400 : content.npos);
    co_await exchange.write(std::move(text));
    exchange.cut();
  };
  EXPECT_EQ(fetch({.size = content.size(), .state = {.etag = etag}}), content);
  EXPECT_EQ(begins.size(), 2u);
}

TEST_F(ATransfer, shows_no_query_where_no_server_is) {
  core::CancelSource stop;
  Sources sources(loop, {});
  for (const auto* place : {"http://127.0.0.1:1/base?sig=hush", "/elsewhere"}) {
    handler = [](HttpExchange& exchange) {
      return exchange.answer(302, "", "Location: http://127.0.0.1:1/base?sig=hush\r\n");
    };
    const auto url = *place == '/' ? server.url() + place : place;
    Reading reading;
    try {
      run_task(loop, sources.read(address_of(url, ""), reading, stop));
      ADD_FAILURE() << url;
    } catch (const core::EnvironmentError& error) {
      EXPECT_THAT(error.what(), HasSubstr("127.0.0.1:1/base"));
      EXPECT_THAT(error.what(), Not(HasSubstr("hush")));
    }
  }
}

TEST_F(ATransfer, without_bytes_sends_no_request) {
  EXPECT_EQ(fetch({.size = 0}), "");
  EXPECT_TRUE(begins.empty());
}

TEST_F(ATransfer, fails_for_good_with_other_statuses) {
  handler = [](HttpExchange& exchange) { return exchange.answer(404, "no"); };
  EXPECT_THAT(fetch({}), HasSubstr("the server answered 404"));
}

TEST_F(ATransfer, knows_ranges_and_pauses) {
  const auto with = [](const char* name, const char* value) {
    net::Response response;
    response.headers.emplace(name, value);
    return response;
  };
  const auto range = range_of(with("content-range", "bytes 0-9/100"));
  ASSERT_TRUE(range);
  EXPECT_EQ(range->end, 10u);
  EXPECT_EQ(range->total, 100u);
  for (const char* wrong : {"", "bytes */100", "bytes 9-0/100", "bytes 0-100/100", "bytes 0-9/*",
                            "bytes 0-9/99999999999999999999999", "lines 0-9/100", "bytes -9/100"})
    EXPECT_FALSE(range_of(with("content-range", wrong))) << wrong;
  EXPECT_EQ(wanted_pause(with("retry-after", "7")), std::chrono::seconds(7));
  EXPECT_EQ(wanted_pause(with("retry-after", "99999")), std::chrono::seconds(60));
  EXPECT_FALSE(wanted_pause(with("retry-after", "Tue, 24 Nov 2026 10:00:00 GMT")));
}

TEST_F(ATransfer, asks_for_the_state_by_get_where_head_is_not_supported) {
  Sources sources(loop, {});
  core::CancelSource stop;
  handler = [this](HttpExchange& exchange) -> async::Task<> {
    if (exchange.method == "HEAD") return exchange.answer(405, "");
    return serve(exchange);
  };
  const auto address = address_of(server.url() + "/data", "");
  const auto ranged = run_task(loop, sources.state(address, stop));
  EXPECT_EQ(ranged.size, content.size());
  EXPECT_EQ(ranged.etag, etag);
  has_ranges = false;
  const auto whole = run_task(loop, sources.state(address, stop));
  EXPECT_EQ(whole.size, content.size()) << "the body of the response is not read to its end";
}

}  // namespace
}  // namespace pipeline::fetch

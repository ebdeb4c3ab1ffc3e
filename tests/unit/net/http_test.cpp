#include "net/http.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "unit/net/http_fixture.hpp"

namespace pipeline::net {
namespace {

TEST_F(Http, bodies_are_sent_and_received) {
  auto post = request("/echo");
  post.method = "POST";
  post.body = std::string(300'000, 'x');
  EXPECT_EQ(send(post).body, "POST " + post.body);
  auto remove = request("/echo");
  remove.method = "DELETE";
  EXPECT_EQ(send(remove).body, "DELETE ");
  auto empty = request("/echo");
  empty.method = "POST";
  EXPECT_EQ(send(empty).body, "POST ");
}

TEST_F(Http, a_source_is_sent_chunked_as_it_comes) {
  auto upload = request("/echo");
  upload.method = "POST";
  int left = 500;
  std::string expected = "POST ";
  upload.body_source = [&](std::span<char> buffer) -> std::size_t {
    if (left == 0) return 0;
    const auto size =
        std::min<std::size_t>(buffer.size(), static_cast<std::size_t>(left-- * 7 % 4000 + 1));
    std::fill_n(buffer.begin(), size, static_cast<char>('a' + left % 26));
    expected.append(buffer.data(), size);
    return size;
  };
  EXPECT_EQ(send(upload).body, expected);
}

TEST_F(Http, a_stream_comes_in_pieces_and_its_headers_first) {
  std::string streamed;
  long status_before_body = 0;
  run([](HttpClient& client, Request request, std::string& text, long& status) -> async::Task<> {
    const std::function<void(std::string_view)> on_body = [&](std::string_view bytes) {
      text += bytes;
    };
    const std::function<void(const Response&)> on_headers = [&](const Response& response) {
      status = text.empty() ? response.status : -1;
    };
    const auto response = co_await client.send(std::move(request), on_body, nullptr, on_headers);
    EXPECT_EQ(response.body, "");
  }(client_, request("/stream"), streamed, status_before_body));
  EXPECT_EQ(streamed.size(), 500U);
  EXPECT_EQ(status_before_body, 200);
}

TEST_F(Http, an_answer_that_ends_with_the_connection_is_whole) {
  EXPECT_EQ(send(request("/until-close")).body, "raw bytes");
}

TEST_F(Http, an_interim_answer_is_not_the_answer) {
  const auto response = send(request("/continue"));
  EXPECT_EQ(response.body, "late");
  EXPECT_EQ(response.header("x-early"), "");
  EXPECT_EQ(response.header("x-kind"), "small");
}

TEST_F(Http, no_expectation_is_sent_and_headers_are) {
  auto post = request("/headers");
  post.method = "POST";
  post.body = std::string(2'000'000, 'x');
  post.headers.push_back("X-Mine: yes");
  const auto seen = send(post).body;
  EXPECT_EQ(seen.find("Expect"), std::string::npos);
  EXPECT_NE(seen.find("X-Mine: yes"), std::string::npos);
}

TEST_F(Http, the_environments_proxy_is_not_for_unix_sockets) {
  const char* before = std::getenv("http_proxy");
  const std::string kept = before ? before : "";
  setenv("http_proxy", "http://127.0.0.1:1", 1);
  EXPECT_EQ(send(request("/echo")).body, "GET ");
  if (before)
    setenv("http_proxy", kept.c_str(), 1);
  else
    unsetenv("http_proxy");
}

TEST_F(Http, one_connection_serves_one_request_after_the_other) {
  for (int i = 0; i < 20; ++i) EXPECT_EQ(send(request("/echo")).status, 200);
  EXPECT_EQ(server_.connections(), 1);
}

TEST_F(Http, a_send_from_within_a_callback_works) {
  std::string inner;
  bool first = true;
  const auto response = send(request("/stream"), [&](std::string_view) {
    if (!std::exchange(first, false)) return;
    asio::co_spawn(loop_, client_.send(request("/echo")),
                   [&](std::exception_ptr error, const Response& other) {
                     if (!error) inner = other.body;
                   });
  });
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(inner, "GET ");
}

TEST_F(Http, tcp_works_too) {
  Server<Tcp> server({asio::ip::address_v4::loopback(), 0});
  Request tcp;
  setenv("no_proxy", "127.0.0.1", 1);
  tcp.url = "http://127.0.0.1:" + std::to_string(server.port()) + "/echo";
  EXPECT_EQ(send(tcp).body, "GET ");
}

/// Sends requests all at once, and returns the number of good answers.
int many(asio::io_context& loop, HttpClient& client, const Request& request, int count,
         std::string& errors) {
  int good = 0;
  for (int i = 0; i < count; ++i)
    asio::co_spawn(loop, client.send(request),
                   [&](std::exception_ptr error, const Response& response) {
                     good += !error && response.body == "slow";
                     try {
                       if (error) std::rethrow_exception(error);
                     } catch (const std::exception& failed) {
                       errors += std::string(failed.what()) + "\n";
                     }
                   });
  loop.restart();
  loop.run();
  return good;
}

TEST_F(Http, hundreds_at_once_all_get_their_answer) {
  std::string errors;
  EXPECT_EQ(many(loop_, client_, request("/slow"), 450, errors), 450) << errors;
}

TEST_F(Http, a_full_backlog_only_delays_requests) {
  const auto path = socket_ + "-narrow";
  Server<Local> narrow(Local::endpoint(path), 1);
  auto slow = request("/slow");
  slow.unix_socket = path;
  std::string errors;
  EXPECT_EQ(many(loop_, client_, slow, 200, errors), 200) << errors;
}

}  // namespace
}  // namespace pipeline::net

#include "net/http.hpp"

#include <atomic>
#include <cstdlib>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>

#include "async/joinable_task.hpp"
#include "core/file.hpp"

namespace pipeline::net {
namespace {

using Local = asio::local::stream_protocol;
using Tcp = asio::ip::tcp;

/// A small server on a thread of its own: what a path does is written in serve().
template <class Protocol>
class Server {
 public:
  explicit Server(const typename Protocol::endpoint& endpoint, int backlog = 128)
      : acceptor_(loop_, endpoint.protocol()) {
    acceptor_.bind(endpoint);
    acceptor_.listen(backlog);
    asio::co_spawn(loop_, accept(), asio::detached);
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~Server() {
    loop_.stop();
    thread_.join();
  }
  auto port() const { return acceptor_.local_endpoint().port(); }
  int connections() const { return connections_; }

 private:
  using Socket = typename Protocol::socket;

  async::Task<> accept() {
    while (true) {
      auto socket = co_await acceptor_.async_accept(asio::use_awaitable);
      ++connections_;
      asio::co_spawn(loop_, serve(std::move(socket)), asio::detached);
    }
  }
  async::Task<> write(Socket& socket, std::string text) {
    co_await asio::async_write(socket, asio::buffer(text), asio::use_awaitable);
  }
  async::Task<> pause(int milliseconds) {
    asio::steady_timer timer(loop_, std::chrono::milliseconds(milliseconds));
    co_await timer.async_wait(asio::use_awaitable);
  }
  static std::string answer(const std::string& body, const std::string& status = "200 OK") {
    return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\nX-Kind: small\r\n\r\n" + body;
  }
  /// The body of a chunked request, its chunks joined.
  async::Task<std::string> read_chunks(Socket& socket, asio::streambuf& buffer) {
    std::string body;
    while (true) {
      co_await asio::async_read_until(socket, buffer, "\r\n", asio::use_awaitable);
      std::istream stream(&buffer);
      std::string line;
      std::getline(stream, line);
      const auto size = std::stoul(line, nullptr, 16);
      if (buffer.size() < size + 2)
        co_await asio::async_read(socket, buffer, asio::transfer_exactly(size + 2 - buffer.size()),
                                  asio::use_awaitable);
      std::string chunk(size + 2, 0);
      stream.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
      if (size == 0) co_return body;
      body.append(chunk, 0, size);
    }
  }
  async::Task<> serve(Socket socket) {
    asio::streambuf buffer;
    try {
      while (true) {
        co_await asio::async_read_until(socket, buffer, "\r\n\r\n", asio::use_awaitable);
        std::istream stream(&buffer);
        std::string method, path, line;
        stream >> method >> path;
        std::getline(stream, line);
        std::size_t length = 0;
        bool chunked = false;
        std::string headers;
        while (std::getline(stream, line) && line != "\r") {
          if (line.starts_with("Content-Length: ")) length = std::stoul(line.substr(16));
          if (line.starts_with("Transfer-Encoding: chunked")) chunked = true;
          headers += line;
        }
        std::string body(length, 0);
        if (chunked) {
          body = co_await read_chunks(socket, buffer);
        } else if (length > 0) {
          if (buffer.size() < length)
            co_await asio::async_read(socket, buffer,
                                      asio::transfer_exactly(length - buffer.size()),
                                      asio::use_awaitable);
          stream.read(body.data(), static_cast<std::streamsize>(length));
        }
        if (path == "/echo")
          co_await write(socket, answer(method + " " + body));
        else if (path == "/headers")
          co_await write(socket, answer(headers));
        else if (path == "/missing")
          co_await write(socket, answer(R"({"message":"not here"})", "404 Not Found"));
        else if (path == "/continue")
          co_await write(socket, "HTTP/1.1 100 Continue\r\nX-Early: 1\r\n\r\n" + answer("late"));
        else if (path == "/slow") {
          co_await pause(30);
          co_await write(socket, answer("slow"));
        } else if (path == "/never") {
          co_await pause(600'000);
        } else if (path == "/stream") {
          co_await write(socket, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
          for (int i = 0; i < 100; ++i) {
            co_await write(socket, "5\r\nhello\r\n");
            if (i % 10 == 0) co_await pause(1);
          }
          co_await write(socket, "0\r\n\r\n");
        } else if (path == "/endless") {
          co_await write(socket, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
          while (true) {
            co_await write(socket, "5\r\nhello\r\n");
            co_await pause(1);
          }
        } else if (path == "/drops") {
          co_await write(socket, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
          while (true) {
            co_await write(socket, "2\r\nit\r\n");
            co_await pause(100);
          }
        } else if (path.starts_with("/endless-")) {
          co_await write(
              socket,
              "HTTP/1.1 " + std::string(path == "/endless-error" ? "404 x" : "302 x") + "\r\n\r\n");
          while (true) co_await write(socket, std::string(10'000, 'x'));
        } else if (path == "/headers-without-end" || path == "/trailers-without-end") {
          co_await write(socket, "HTTP/1.1 200 OK\r\n");
          if (path.starts_with("/trailers"))
            co_await write(socket, "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n");
          while (true) co_await write(socket, "X: " + std::string(10'000, 'x') + "\r\n");
        } else if (method == "CONNECT") {
          co_await write(socket, "HTTP/1.1 200 Connection established\r\n\r\n");
          co_return;
        } else if (path == "/until-close") {
          co_await write(socket, "HTTP/1.1 200 OK\r\n\r\nraw bytes");
          co_return;
        } else if (path == "/cut-body") {
          co_await write(socket, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this");
          co_return;
        } else if (path == "/cut-headers") {
          co_await write(socket, "HTTP/1.1 200 OK\r\nContent-");
          co_return;
        } else if (path == "/cut") {
          co_return;
        } else if (path == "/nonsense") {
          co_await write(socket, "hello, who is there?\r\n\r\n");
          co_return;
        }
      }
    } catch (const boost::system::system_error&) {  // the client has gone
    }
  }

  asio::io_context loop_;
  typename Protocol::acceptor acceptor_;
  std::atomic<int> connections_ = 0;
  std::thread thread_;
};

class Http : public testing::Test {
 protected:
  Request request(const std::string& path) const {
    Request request;
    request.url = "http://local" + path;
    request.unix_socket = socket_;
    return request;
  }
  /// Runs the coroutine to its end on the loop; its error reaches the test.
  void run(async::Task<> task) {
    std::exception_ptr failure;
    asio::co_spawn(loop_, std::move(task), [&](std::exception_ptr error) { failure = error; });
    loop_.restart();
    loop_.run();
    if (failure) std::rethrow_exception(failure);
  }
  Response send(Request to_send, std::function<void(std::string_view)> on_body = {},
                core::CancelSource* cancel = nullptr) {
    Response response;
    run([](HttpClient& client, Request request, std::function<void(std::string_view)> body,
           core::CancelSource* source, Response& result) -> async::Task<> {
      result = co_await client.send(std::move(request), std::move(body), source);
    }(client_, std::move(to_send), std::move(on_body), cancel, response));
    return response;
  }
  std::string failure(Request to_send, core::CancelSource* cancel = nullptr) {
    try {
      send(std::move(to_send), {}, cancel);
    } catch (const TransportError& error) {
      return error.what();
    }
    return "no error";
  }

  core::TemporaryFolder folder_;
  std::string socket_ = (folder_.path() / "s").string();
  Server<Local> server_{Local::endpoint(socket_)};
  asio::io_context loop_;
  HttpClient client_{loop_};
};

TEST_F(Http, a_connection_that_is_cut_anywhere_is_an_error) {
  for (const char* path : {"/cut", "/cut-headers", "/cut-body", "/nonsense"}) {
    const auto text = failure(request(path));
    EXPECT_NE(text.find(std::string("GET http://local") + path + " on " + socket_ + ": "),
              std::string::npos)
        << path << ": " << text;
  }
}

TEST_F(Http, a_missing_socket_is_named_with_the_reason) {
  auto none = request("/echo");
  none.unix_socket += "-none";
  EXPECT_EQ(failure(none), "cannot connect to " + socket_ + "-none: No such file or directory");
  Request refused;
  {
    Tcp::acceptor free(loop_, {asio::ip::address_v4::loopback(), 0});
    refused.url = "http://127.0.0.1:" + std::to_string(free.local_endpoint().port()) + "/";
  }
  setenv("no_proxy", "127.0.0.1", 1);
  EXPECT_EQ(failure(refused), "cannot connect to " + refused.url + ": Connection refused");
}

TEST_F(Http, a_request_to_a_server_that_never_answers_ends_at_the_timeout) {
  auto never = request("/never");
  never.timeout = std::chrono::milliseconds(50);
  EXPECT_NE(failure(never).find("timed out"), std::string::npos) << failure(never);
}

TEST_F(Http, a_server_that_is_silent_is_given_up_before_the_timeout) {
  auto never = request("/never");
  never.timeout = std::chrono::hours(1);
  never.silence = std::chrono::seconds(1);
  EXPECT_NE(failure(never).find("too slow"), std::string::npos) << failure(never);
}

TEST_F(Http, a_server_that_sends_a_few_bytes_a_second_is_given_up) {
  auto drops = request("/drops");
  drops.timeout = std::chrono::hours(1);
  drops.silence = std::chrono::seconds(2);
  EXPECT_NE(failure(drops).find("too slow"), std::string::npos) << failure(drops);
}

TEST_F(Http, a_header_that_would_smuggle_another_is_refused) {
  auto bad = request("/echo");
  bad.headers.push_back("X-A: 1\r\nX-B: 2");
  EXPECT_THROW(send(bad), core::EnvironmentError);
}

TEST_F(Http, an_error_status_is_an_answer_with_its_body) {
  std::string streamed;
  const auto response =
      send(request("/missing"), [&](std::string_view bytes) { streamed += bytes; });
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(response.body, R"({"message":"not here"})");
  EXPECT_EQ(streamed, "");
}

TEST_F(Http, endless_errors_and_redirections_are_cut) {
  for (const std::string path : {"/endless-error", "/endless-redirection"}) {
    auto question = request(path);
    question.timeout = std::chrono::seconds(20);
    const auto response = send(question, [](std::string_view) {
      ADD_FAILURE() << "it is not the content that was asked for";
    });
    EXPECT_EQ(response.status, path == "/endless-error" ? 404 : 302);
    EXPECT_EQ(response.body, std::string(1 << 20, 'x'));
  }
  EXPECT_EQ(send(request("/echo")).body, "GET ");
}

TEST_F(Http, an_endless_head_is_an_error) {
  for (const auto* path : {"/headers-without-end", "/trailers-without-end"})
    EXPECT_THROW(send(request(path)), core::EnvironmentError) << path;
}

TEST_F(Http, an_answer_of_a_proxy_is_not_taken_for_the_servers) {
  Server<Tcp> proxy({asio::ip::address_v4::loopback(), 0});
  setenv("https_proxy", ("http://127.0.0.1:" + std::to_string(proxy.port())).c_str(), 1);
  Request to_send;
  to_send.url = "https://server.invalid/";
  bool has_answer = false;
  EXPECT_THROW(run([](HttpClient& client, Request request, bool& answered) -> async::Task<> {
                 std::function<void(const Response&)> on_headers = [&](const Response&) {
                   answered = true;
                 };
                 std::function<void(std::string_view)> no_body;
                 co_await client.send(std::move(request), std::move(no_body), nullptr,
                                      std::move(on_headers));
               }(client_, std::move(to_send), has_answer)),
               TransportError);
  unsetenv("https_proxy");
  EXPECT_EQ(proxy.connections(), 1);
  EXPECT_FALSE(has_answer);
}

TEST_F(Http, an_exception_of_a_callback_reaches_the_caller_and_the_client_stays_usable) {
  const auto throwing = [](std::string_view) { throw std::runtime_error("the disk is full"); };
  EXPECT_THROW(send(request("/endless"), throwing), std::runtime_error);
  auto upload = request("/echo");
  upload.method = "POST";
  upload.body_source = [](std::span<char>) -> std::size_t {
    throw std::runtime_error("the file is gone");
  };
  EXPECT_THROW(send(upload), std::runtime_error);
  EXPECT_EQ(send(request("/echo")).body, "GET ");
}

TEST_F(Http, cancelling_ends_the_exchange_also_from_within_a_callback) {
  core::CancelSource before, within;
  before.stop(core::StopLevel::graceful);
  EXPECT_EQ(failure(request("/never"), &before), "GET http://local/never was cancelled");
  int pieces = 0;
  EXPECT_THROW(send(
                   request("/endless"),
                   [&](std::string_view) {
                     if (++pieces == 3) within.stop(core::StopLevel::immediate);
                   },
                   &within),
               TransportError);
  EXPECT_GE(pieces, 3);
  core::CancelSource later;
  asio::steady_timer timer(loop_, std::chrono::milliseconds(20));
  timer.async_wait([&](boost::system::error_code) { later.stop(core::StopLevel::graceful); });
  EXPECT_EQ(failure(request("/never"), &later), "GET http://local/never was cancelled");
}

TEST_F(Http, destroying_the_client_ends_what_is_in_progress) {
  auto client = std::make_unique<HttpClient>(loop_);
  int ended = 0;
  for (int i = 0; i < 10; ++i)
    asio::co_spawn(loop_, client->send(request(i % 2 ? "/never" : "/endless")),
                   [&](std::exception_ptr error, const Response&) { ended += error != nullptr; });
  asio::steady_timer timer(loop_, std::chrono::milliseconds(30));
  timer.async_wait([&](boost::system::error_code) { client.reset(); });
  loop_.run();
  EXPECT_EQ(ended, 10);
}

TEST(HttpEnd, a_loop_that_ends_during_exchanges_leaks_nothing) {
  const core::TemporaryFolder folder;
  const auto socket = (folder.path() / "s").string();
  Server<Local> server{Local::endpoint(socket)};
  const auto held = std::make_shared<int>();  // by each exchange that has not ended
  {
    asio::io_context loop;
    HttpClient client(loop);
    for (int i = 0; i < 10; ++i) {
      Request request;
      request.url = "http://local/never";
      request.unix_socket = socket;
      asio::co_spawn(loop, client.send(request), [held](std::exception_ptr, const Response&) {});
    }
    loop.run_for(std::chrono::milliseconds(30));
    EXPECT_EQ(held.use_count(), 11);
  }
  EXPECT_EQ(held.use_count(), 1);
}

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

/// @file
/// A small server for tests of the HTTP client.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>

#include "core/file.hpp"
#include "net/http.hpp"

namespace pipeline::net {

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

}  // namespace pipeline::net

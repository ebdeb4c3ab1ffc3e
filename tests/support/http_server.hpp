/// @file
/// A small HTTP server on the test's own loop; a function of the test returns its responses.
#pragma once

#include <functional>
#include <istream>
#include <string>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>

#include "async/task.hpp"

namespace pipeline::test {

/// One request, and the functions to respond to it.
class HttpExchange {
 public:
  explicit HttpExchange(asio::ip::tcp::socket& socket) : socket_(socket) {}
  std::string method, target, headers, body;  ///< A body in chunks is dropped.

  async::Task<> answer(int status, std::string text, std::string more_headers = {}) {
    co_await write("HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Length: " +
                   std::to_string(text.size()) + "\r\n" + more_headers + "\r\n" + text);
  }
  /// Answers a HEAD request. @param size bytes that a GET request would receive
  async::Task<> answer_head(std::size_t size, std::string more_headers) {
    co_await write("HTTP/1.1 200 X\r\nContent-Length: " + std::to_string(size) + "\r\n" +
                   more_headers + "\r\n");
  }
  /// Begins a response in chunks; piece() and end_stream() follow.
  /// @param more_headers lines, each with its `\r\n`
  async::Task<> begin_stream(std::string status = "200 OK", std::string more_headers = "") {
    co_await write("HTTP/1.1 " + status + "\r\n" + more_headers +
                   "Transfer-Encoding: chunked\r\n\r\n");
  }
  async::Task<> piece(std::string text) {
    char size[20];
    std::snprintf(size, sizeof size, "%zx\r\n", text.size());
    co_await write(size + text + "\r\n");
  }
  async::Task<> end_stream() { co_await write("0\r\n\r\n"); }
  /// Closes the connection, also in the middle of a response.
  void cut() { socket_.close(); }
  /// Waits until the client closes the connection.
  async::Task<> hang() {
    char byte;
    boost::system::error_code gone;
    co_await socket_.async_read_some(asio::buffer(&byte, 1),
                                     asio::redirect_error(asio::use_awaitable, gone));
    cut();
  }

  async::Task<> write(std::string text) {
    boost::system::error_code gone;
    co_await asio::async_write(socket_, asio::buffer(text),
                               asio::redirect_error(asio::use_awaitable, gone));
  }

 private:
  asio::ip::tcp::socket& socket_;
};

/// Listens on a free port of 127.0.0.1. Must outlive its clients' requests; the test runs the loop.
class HttpServer {
 public:
  using Handler = std::function<async::Task<>(HttpExchange&)>;
  HttpServer(asio::io_context& loop, Handler handler)
      : acceptor_(loop, asio::ip::tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)),
        handler_(std::move(handler)) {
    asio::co_spawn(loop, accept(), asio::detached);
  }
  std::string url() const {
    return "http://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
  }
  /// All requests so far as `GET /path`, in order.
  std::vector<std::string> asked;

 private:
  async::Task<> accept() {
    const auto executor = co_await asio::this_coro::executor;
    for (;;) {
      auto socket = co_await acceptor_.async_accept(asio::use_awaitable);
      asio::co_spawn(executor, serve(std::move(socket)), asio::detached);
    }
  }
  async::Task<> serve(asio::ip::tcp::socket socket) {
    asio::streambuf buffer;
    while (socket.is_open()) {
      boost::system::error_code gone;
      co_await asio::async_read_until(socket, buffer, "\r\n\r\n",
                                      asio::redirect_error(asio::use_awaitable, gone));
      if (gone) co_return;
      HttpExchange exchange(socket);
      std::istream stream(&buffer);
      std::string line;
      stream >> exchange.method >> exchange.target;
      std::getline(stream, line);
      std::size_t length = 0;
      while (std::getline(stream, line) && line != "\r") {
        if (line.starts_with("Content-Length: ")) length = std::stoul(line.substr(16));
        exchange.headers += line + "\n";
      }
      if (buffer.size() < length)
        co_await asio::async_read(socket, buffer, asio::transfer_exactly(length - buffer.size()),
                                  asio::redirect_error(asio::use_awaitable, gone));
      exchange.body.resize(length);
      stream.read(exchange.body.data(), static_cast<std::streamsize>(length));
      if (exchange.headers.find("Transfer-Encoding: chunked") != std::string::npos)
        buffer.consume(co_await asio::async_read_until(
            socket, buffer, "0\r\n\r\n", asio::redirect_error(asio::use_awaitable, gone)));
      asked.push_back(exchange.method + " " + exchange.target);
      co_await handler_(exchange);
    }
  }

  asio::ip::tcp::acceptor acceptor_;
  Handler handler_;
};

}  // namespace pipeline::test

/// @file
/// A unix socket between a test and a real engine that interrupts, delays and falsifies the
/// traffic. It runs in a thread of its own.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>

#include "async/task.hpp"
#include "core/file.hpp"

namespace pipeline::test {

enum class Fault {
  none,
  refused,      ///< The connection is closed without a response; the engine receives nothing.
  lost_answer,  ///< The engine executes the request, but its response is dropped.
  broken,       ///< 500 instead of the engine's response; the engine receives nothing.
  unavailable,  ///< 503.
  missing,      ///< 404.
  hangs,        ///< Never answered.
};

/// Returns the HTTP status that is answered in place of the engine; 0 for faults of another kind.
inline int status_of(Fault fault) {
  return fault == Fault::broken        ? 500
         : fault == Fault::unavailable ? 503
         : fault == Fault::missing     ? 404
                                       : 0;
}

class EngineProxy {
 public:
  /// @param fault called for each request, in the proxy's thread
  explicit EngineProxy(
      std::function<Fault(const std::string& method, const std::string& target)> fault,
      std::string engine = "/var/run/docker.sock")
      : fault_(std::move(fault)),
        engine_(std::move(engine)),
        acceptor_(loop_, Protocol::endpoint(socket())) {
    asio::co_spawn(loop_, accept(), asio::detached);
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~EngineProxy() {
    loop_.stop();
    thread_.join();
  }
  std::string url() const { return "unix://" + socket(); }

  /// Closes all open connections, as when an engine is stopped.
  void cut_all() {
    asio::post(loop_, [this] {
      for (auto* each : open_) each->close();
    });
  }
  /// Returns `POST /v1.41/containers/create?name=x` and the like, for all requests in order.
  std::vector<std::string> asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  using Protocol = asio::local::stream_protocol;

  std::string socket() const { return (folder_.path() / "engine.sock").string(); }

  async::Task<> accept() {
    for (;;) {
      auto client = co_await acceptor_.async_accept(asio::use_awaitable);
      asio::co_spawn(loop_, serve(std::move(client)), [](std::exception_ptr) {});
    }
  }

  async::Task<> serve(Protocol::socket client) {
    const Listed listed(open_, client);
    asio::streambuf buffer;
    const auto size =
        co_await asio::async_read_until(client, buffer, "\r\n\r\n", asio::use_awaitable);
    std::string head(size, '\0');
    std::istream stream(&buffer);
    stream.read(head.data(), static_cast<std::streamsize>(size));
    const auto space = head.find(' '), end = head.find(' ', space + 1);
    const auto method = head.substr(0, space), target = head.substr(space + 1, end - space - 1);
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back(method + " " + target);
    }
    const auto fault = fault_(method, target);
    if (fault == Fault::refused) co_return;
    if (fault == Fault::hangs) {
      asio::steady_timer never(loop_, asio::steady_timer::time_point::max());
      co_await never.async_wait(asio::use_awaitable);
    }
    if (const int status = status_of(fault)) {
      std::string answer = "HTTP/1.1 " + std::to_string(status) + " X\r\n";
      answer += "Connection: close\r\nContent-Length: 20\r\n\r\n{\"message\": \"a try\"}";
      co_await asio::async_write(client, asio::buffer(answer), asio::use_awaitable);
      co_return;
    }
    Protocol::socket server(loop_);
    const Listed listed_too(open_, server);
    co_await server.async_connect(Protocol::endpoint(engine_), asio::use_awaitable);
    // The client opens a connection for each request then, so that the proxy reads each head.
    head.insert(head.find("\r\n") + 2, "Connection: close\r\n");
    co_await asio::async_write(server, asio::buffer(head), asio::use_awaitable);
    co_await asio::async_write(server, buffer.data(), asio::use_awaitable);
    asio::co_spawn(loop_, pass(client, server), [](std::exception_ptr) {});
    if (fault == Fault::lost_answer) {
      char byte;
      co_await asio::async_read(server, asio::buffer(&byte, 1), asio::use_awaitable);
    } else {
      boost::system::error_code cut;
      std::vector<char> bytes(64 * 1024);
      while (!cut) {
        const auto count = co_await server.async_read_some(
            asio::buffer(bytes), asio::redirect_error(asio::use_awaitable, cut));
        if (count)
          co_await asio::async_write(client, asio::buffer(bytes, count), asio::use_awaitable);
      }
    }
    // pass() still refers to both sockets: it is resumed with an error before they are destroyed.
    client.close();
    server.close();
    co_await asio::post(loop_, asio::use_awaitable);
    co_await asio::post(loop_, asio::use_awaitable);
  }

  /// Copies bytes until one of the sockets is closed, which throws.
  static async::Task<> pass(Protocol::socket& from, Protocol::socket& to) {
    std::vector<char> bytes(64 * 1024);
    for (;;) {
      const auto count = co_await from.async_read_some(asio::buffer(bytes), asio::use_awaitable);
      co_await asio::async_write(to, asio::buffer(bytes, count), asio::use_awaitable);
    }
  }

  /// Keeps a socket in `open_` for cut_all().
  struct Listed {
    Listed(std::list<Protocol::socket*>& open, Protocol::socket& socket)
        : open_(open), place_(open.insert(open.end(), &socket)) {}
    ~Listed() { open_.erase(place_); }
    Listed(const Listed&) = delete;
    Listed& operator=(const Listed&) = delete;
    std::list<Protocol::socket*>& open_;
    std::list<Protocol::socket*>::iterator place_;
  };

  std::function<Fault(const std::string&, const std::string&)> fault_;
  const std::string engine_;
  const core::TemporaryFolder folder_;
  mutable std::mutex mutex_;
  std::vector<std::string> asked_;
  std::list<Protocol::socket*> open_;
  asio::io_context loop_;
  Protocol::acceptor acceptor_;
  std::thread thread_;
};

}  // namespace pipeline::test

/// @file
/// HTTP/1.1 for a static program: plain or TLS, blocking, one connection for each call in progress;
/// all threads share the idle connections, which later calls to the same host use. Boost.Beast
/// would make the static program 538 KB larger (5,509,576 instead of 4,971,432 bytes), because its
/// timeouts require asynchronous operations and thus an event loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"

namespace pipeline::stager {

struct Reply {
  int status = 0;
  std::map<std::string, std::string> headers;  ///< Names in lower case.
  std::string body;
};

struct HttpCall {
  std::string method = "GET";
  std::string url;
  std::vector<std::string> headers = {};  ///< `Name: value`.
  std::uint64_t size = 0;                 ///< Size of the body, which `read` returns at any offset.
  std::function<std::size_t(std::uint64_t offset, std::span<char> into)> read = {};
  /// Receives the response before its body.
  std::function<void(const Reply&)> on_headers = {};
  /// Receives the response's body if its status is below 300; otherwise the body is collected.
  /// @param is_range the server sends only the requested range
  std::function<void(bool is_range, std::string_view bytes)> on_bytes = {};
};

/// A call has no usable response. Http throws it if the server cannot be found or reached, is
/// distrusted, silent or cut off, or does not speak HTTP; transfer.cpp and source.cpp if the server
/// asks for a retry (503, 429) or does not send the requested range.
class NoAnswer : public core::EnvironmentError {
 public:
  NoAnswer(const std::string& message, bool is_transient, std::chrono::seconds pause = {})
      : core::EnvironmentError(message), is_transient_(is_transient), pause_(pause) {}
  bool is_transient() const { return is_transient_; }           ///< A retry can succeed.
  std::chrono::seconds wanted_pause() const { return pause_; }  ///< The server's Retry-After.

 private:
  bool is_transient_;
  std::chrono::seconds pause_;
};

class Connection;

/// May be used by several threads.
class Http {
 public:
  /// @param authorities CAs for servers' certificates, PEM
  /// @param silence time after which a server is given up that sends or takes hardly any bytes
  explicit Http(std::string authorities,
                std::chrono::milliseconds silence = std::chrono::minutes(1));
  ~Http();
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;
  /// Throws NoAnswer. Its messages name the host, never the rest of the URL, which may be a secret.
  Reply send(const HttpCall& call);

 private:
  std::unique_ptr<Connection> take_idle(const std::string& url);

  std::string authorities_;
  std::chrono::milliseconds silence_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Connection>> idle_;
};

}  // namespace pipeline::stager

/// @file
/// HTTP on the event loop: libcurl's multi interface (loaded on first use) on Boost.Asio. TCP, TLS
/// and unix sockets, streams both ways.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/socket.h>

#include "async/task.hpp"
#include "core/cancel.hpp"
#include "core/error.hpp"

namespace pipeline::net {

struct TlsOptions {
  std::string ca_file, cert_file,
      key_file;               ///< PEM; empty: the system's CAs, no client certificate.
  std::string ca, cert, key;  ///< The same as texts, which go before the files.
  bool verify = true;
};

/// Fills the buffer and returns how many bytes it wrote; 0 at the end. Called on the loop's thread;
/// throws to abort.
using BodySource = std::function<std::size_t(std::span<char>)>;

struct Request {
  std::string method = "GET";
  std::string url;          ///< `http://docker/v1.41/_ping`
  std::string unix_socket;  ///< Path, or empty for TCP.
  /// Makes the socket of a new connection, not connected yet, and says where it is to be connected;
  /// `unix_socket` is then only its name.
  std::function<int(sockaddr& address, unsigned& length)> connect;
  std::vector<std::string> headers;  ///< `Name: value`
  std::string body;                  ///< Sent if not empty ...
  BodySource
      body_source;  ///< ... or this: as many bytes as the header Content-Length says, else chunked.
  TlsOptions tls;
  std::string proxy;    ///< URL of one (http, https, socks5); empty: what the environment names.
  std::string address;  ///< `HOST:PORT` to connect to in the place of the URL's, which then is only
                        ///< the name in the certificate.
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds timeout{0};  ///< Of the whole exchange; 0: none (streams).
};

struct Response {
  long status = 0;
  std::multimap<std::string, std::string> headers;  ///< Names in lower case.
  std::string body;                                 ///< Empty if the body went to a callback.
  std::string header(const std::string& name) const;
};

/// The exchange did not come to an answer: refused, cut, timed out, cancelled.
class TransportError : public core::EnvironmentError {
 public:
  TransportError(int curl_code, const std::string& message)
      : core::EnvironmentError(message), code_(curl_code) {}
  int curl_code() const { return code_; }

 private:
  int code_;
};

/// One per loop. Connections are kept and reused. What is in progress when it is destroyed ends
/// with TransportError.
class HttpClient {
 public:
  explicit HttpClient(asio::io_context& loop);
  ~HttpClient();

  /// @param on_body   gets the body's bytes as they come, for a status below 400; else the body is
  /// collected
  /// @param on_headers called once the status is known
  /// @param cancel    stop (any level) aborts the exchange with TransportError
  async::Task<Response> send(Request request, std::function<void(std::string_view)> on_body = {},
                             core::CancelSource* cancel = nullptr,
                             std::function<void(const Response&)> on_headers = {});

 private:
  struct Implementation;
  std::shared_ptr<Implementation>
      self_;  ///< Shared so that a send() in progress can tell that the client is gone.
};

}  // namespace pipeline::net

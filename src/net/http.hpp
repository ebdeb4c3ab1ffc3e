/// @file
/// An HTTP client on the event loop: libcurl's multi interface (loaded on first use) on Boost.Asio.
/// Supports TCP, TLS and unix sockets, and streams in both directions.
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

#include "async/task.hpp"
#include "core/cancel.hpp"
#include "core/error.hpp"

namespace pipeline::net {

struct TlsOptions {
  /// Paths of PEM files; if empty, the system's CAs and no client certificate.
  std::string ca_file, cert_file, key_file;
  std::string ca, cert, key;  ///< The same as PEM texts, which take precedence over the files.
  bool verify = true;
};

/// Fills the buffer and returns the number of bytes written; 0 at the end. Called on the loop's
/// thread; an exception aborts the exchange.
using BodySource = std::function<std::size_t(std::span<char>)>;

struct Request {
  std::string method = "GET";
  std::string url;          ///< For example `http://docker/v1.41/_ping`.
  std::string unix_socket;  ///< Path; empty for TCP.
  /// Creates the unconnected socket of each new connection; if empty, libcurl does.
  std::function<int()> make_socket;
  std::vector<std::string> headers;  ///< `Name: value`.
  std::string body;                  ///< Sent if not empty.
  /// Sent if set: as many bytes as the header Content-Length says, or chunked without that header.
  BodySource body_source;
  TlsOptions tls;
  std::string proxy;  ///< URL of a proxy (http, https, socks5); if empty, the environment's proxy.
  /// `HOST:PORT` to connect to instead of the URL's, which is then only compared with the
  /// certificate.
  std::string address;
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds timeout{0};  ///< Limit for the whole exchange; 0: no limit (streams).
  /// Limit of a time with less than 1 KiB a second, sent or received; 0: no limit.
  std::chrono::seconds silence{0};
};

struct Response {
  long status = 0;
  std::multimap<std::string, std::string> headers;  ///< Names in lower case.
  std::string body;                                 ///< Empty if the body went to a callback.
  std::string header(const std::string& name) const;
};

/// An exchange ended without a whole response: it was refused, cut, timed out or cancelled.
class TransportError : public core::EnvironmentError {
 public:
  TransportError(int curl_code, const std::string& message)
      : core::EnvironmentError(message), code_(curl_code) {}
  int curl_code() const { return code_; }
  /// Returns true if no server has responded: the proxy's or the server's name is unknown (codes 5
  /// and 6), the port refuses (7), or the server was silent (28). A response that was cut counts as
  /// a response.
  bool is_unanswered() const { return (code_ >= 5 && code_ <= 7) || code_ == 28; }

 private:
  int code_;
};

/// A client on a loop. Connections are kept and reused. Exchanges in progress at destruction
/// end with TransportError.
class HttpClient {
 public:
  explicit HttpClient(asio::io_context& loop);
  ~HttpClient();

  /// Sends a request and returns the response. Throws TransportError.
  /// @param on_body receives the body's bytes as they arrive if the status is below 300; without
  /// `on_body`, a body of at most 64 MiB is collected. From status 300 on, the body's first MiB is
  /// collected, and the rest is not read
  /// @param cancel a stop of any level aborts the exchange with TransportError
  /// @param on_headers called once the status is known
  async::Task<Response> send(Request request, std::function<void(std::string_view)> on_body = {},
                             core::CancelSource* cancel = nullptr,
                             std::function<void(const Response&)> on_headers = {});

 private:
  struct Implementation;
  /// Shared, so that a send() in progress can notice that the client was destroyed.
  std::shared_ptr<Implementation> self_;
};

}  // namespace pipeline::net

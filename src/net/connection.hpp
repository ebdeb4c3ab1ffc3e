/// @file
/// A connection over which another protocol than HTTP is spoken, such as WebSocket: libcurl opens
/// it, with TLS, at a Unix socket or through a proxy where the request says so.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "net/http.hpp"

namespace pipeline::net {

class Connection {
 public:
  /// Connects before it returns. Throws TransportError, or the exception of `make_socket`. Uses
  /// only the parts of the request that describe the server.
  Connection(asio::io_context& loop, Request request);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Returns the number of bytes read; 0 at the end. Throws TransportError.
  async::Task<std::size_t> read_some(std::span<char> buffer);
  /// Writes everything. Throws TransportError. One writer at a time.
  async::Task<> write(std::string bytes);
  /// Tells the other side that no more bytes come; its own bytes can still be read.
  void end_writing();
  /// Lets a read in progress return 0.
  void close();

 private:
  struct Implementation;
  std::shared_ptr<Implementation> self_;  ///< Shared with reads and writes in progress.
};

}  // namespace pipeline::net

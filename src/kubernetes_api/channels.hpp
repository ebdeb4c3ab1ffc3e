/// @file
/// The streams of a container in a pod, over one WebSocket (RFC 6455) with the subprotocol
/// v4.channel.k8s.io, which all servers from 1.20 on speak: each message begins with the number of
/// its channel.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "async/semaphore.hpp"
#include "kubernetes_api/client.hpp"
#include "net/connection.hpp"

namespace pipeline::kubernetes_api {

enum class Channel : char { input = 0, output = 1, errors = 2, status = 3 };

/// A connection that is switched to the protocol.
class Channels {
 public:
  /// Takes over a connection on which the server has switched protocols.
  /// @param rest bytes that were read after the server's response
  Channels(std::unique_ptr<net::Connection> connection, std::string rest)
      : connection_(std::move(connection)), bytes_(std::move(rest)) {}

  /// Ends the connection: a receive() in progress throws or returns nothing.
  void close() { connection_->close(); }
  /// Sends a message; messages of concurrent calls follow one another. Throws TransportError.
  async::Task<> send(Channel channel, std::string bytes);
  /// Returns the next message; nothing at the end. Throws TransportError, and EnvironmentError for
  /// a violation of the protocol.
  async::Task<std::optional<std::pair<Channel, std::string>>> receive();

 private:
  struct Frame {
    bool is_last = false;
    unsigned opcode = 0;
    std::string payload;
  };
  async::Task<std::optional<Frame>> next_frame();
  async::Task<bool> fill_buffer(std::size_t count);
  async::Task<> send_frame(unsigned opcode, std::string payload);

  std::unique_ptr<net::Connection> connection_;
  std::string bytes_;  ///< Bytes that were read, but not used yet.
  async::Semaphore writer_{1};
};

/// Opens the streams that `path` names, for example `.../pods/x/attach?stdin=true`. Throws
/// ApiError, TransportError.
/// @param what completes the message "cannot ..."
async::Task<std::unique_ptr<Channels>> open_channels(Client& client, std::string what,
                                                     std::string path);

}  // namespace pipeline::kubernetes_api

/// @file
/// libcurl's multi handle on the event loop: curl names the sockets and the timeout to wait for,
/// and Asio waits for them.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "async/task.hpp"
#include "net/curl.hpp"

namespace pipeline::net {

class Multi {
 public:
  explicit Multi(asio::io_context& loop);
  /// Exchanges in progress end with CURLE_ABORTED_BY_CALLBACK.
  ~Multi();
  Multi(const Multi&) = delete;
  Multi& operator=(const Multi&) = delete;

  /// Starts the exchange that `easy` describes. `on_done` is called from the loop after `easy` was
  /// removed; it must not throw. Must not be called from one of curl's callbacks; see busy().
  void add(CURL* easy, std::function<void(CURLcode)> on_done);
  /// Ends the exchange early, without calling on_done; does nothing if it is not in progress.
  void remove(CURL* easy);
  /// Returns true while one of curl's callbacks runs; curl refuses calls then.
  bool busy() const { return busy_; }

 private:
  struct Watch {
    explicit Watch(asio::io_context& loop) : descriptor(loop) {}
    asio::posix::stream_descriptor descriptor;
    int wanted = 0;
    bool reading = false, writing = false;
  };
  // Shared with the handlers that wait for the descriptor: before they run, curl may drop a socket
  // and open another with the same number.
  using SharedWatch = std::shared_ptr<Watch>;

  static int on_socket(CURL* easy, curl_socket_t socket, int what, void* self, void* unused);
  static int on_timer(CURLM* multi, long milliseconds, void* self);
  /// Notes which events of the socket curl wants, and waits for them.
  /// @param what CURL_POLL_IN, CURL_POLL_OUT, both or CURL_POLL_REMOVE
  void watch(curl_socket_t socket, int what);
  /// Starts the waits for the wanted events of a socket that have none yet.
  void arm(curl_socket_t socket, const SharedWatch& watch);
  enum class Direction { read, write };
  /// Waits until the socket can be read or written, and tells curl.
  void wait(curl_socket_t socket, const SharedWatch& watch, Direction direction);
  /// Tells curl about the events of a socket, or that its timeout is over.
  void drive(curl_socket_t socket, int events);
  void collect_done();

  asio::io_context& loop_;
  CURLM* multi_;
  asio::steady_timer timer_;
  std::map<curl_socket_t, SharedWatch> watches_;
  std::map<CURL*, std::function<void(CURLcode)>> running_;
  /// Outlives this object in handlers that are already queued.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  bool busy_ = false;
};

}  // namespace pipeline::net

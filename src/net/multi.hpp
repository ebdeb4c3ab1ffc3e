/// @file
/// libcurl's multi handle on the event loop: curl says which sockets and which time it waits for,
/// Asio waits.
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
  /// What is still in progress ends with CURLE_ABORTED_BY_CALLBACK.
  ~Multi();
  Multi(const Multi&) = delete;
  Multi& operator=(const Multi&) = delete;

  /// Begins the exchange that `easy` describes. `on_done` is called from the loop, with `easy`
  /// removed already; it must not throw. Not to be called from within one of curl's callbacks: see
  /// busy().
  void add(CURL* easy, std::function<void(CURLcode)> on_done);
  /// Ends it early, without a call of on_done; no-op for what is not in progress.
  void remove(CURL* easy);
  /// One of curl's callbacks is running: curl refuses to be called.
  bool busy() const { return busy_; }

 private:
  struct Watch {
    explicit Watch(asio::io_context& loop) : descriptor(loop) {}
    asio::posix::stream_descriptor descriptor;
    int wanted = 0;
    bool reading = false, writing = false;
  };
  // Shared with the handlers that wait on the descriptor: curl may drop a socket, and open another
  // with the same number, before they have run.
  using SharedWatch = std::shared_ptr<Watch>;

  static int on_socket(CURL* easy, curl_socket_t socket, int what, void* self, void* unused);
  static int on_timer(CURLM* multi, long milliseconds, void* self);
  void watch(curl_socket_t socket, int what);
  void arm(curl_socket_t socket, const SharedWatch& watch);
  void wait(curl_socket_t socket, const SharedWatch& watch, bool for_reading);
  void drive(curl_socket_t socket, int events);
  void collect_done();

  asio::io_context& loop_;
  CURLM* multi_;
  asio::steady_timer timer_;
  std::map<curl_socket_t, SharedWatch> watches_;
  std::map<CURL*, std::function<void(CURLcode)>> running_;
  std::shared_ptr<bool> alive_ =
      std::make_shared<bool>(true);  // outlives this object in handlers that are queued already
  bool busy_ = false;
};

}  // namespace pipeline::net

#include "net/multi.hpp"

#include <string>
#include <utility>

#include "core/error.hpp"

namespace pipeline::net {
namespace {

/// Throws EnvironmentError if curl has failed. @param what begins the message
void check(CURLMcode code, const char* what) {
  if (code != CURLM_OK)
    throw core::EnvironmentError(std::string(what) + ": " + curl::multi_strerror(code));
}

CURLM* make_multi() {
  static const CURLcode global = curl::global_init(CURL_GLOBAL_DEFAULT);
  CURLM* multi = global == CURLE_OK ? curl::multi_init() : nullptr;
  if (!multi) throw core::EnvironmentError("libcurl cannot be initialised");
  return multi;
}

}  // namespace

Multi::Multi(asio::io_context& loop) : loop_(loop), multi_(make_multi()), timer_(loop) {
  int (*socket_callback)(CURL*, curl_socket_t, int, void*, void*) = &Multi::on_socket;
  int (*timer_callback)(CURLM*, long, void*) = &Multi::on_timer;
  curl::multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, socket_callback);
  curl::multi_setopt(multi_, CURLMOPT_SOCKETDATA, static_cast<void*>(this));
  curl::multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, timer_callback);
  curl::multi_setopt(multi_, CURLMOPT_TIMERDATA, static_cast<void*>(this));
  constexpr long max_idle_connections = 32;
  curl::multi_setopt(multi_, CURLMOPT_MAXCONNECTS, max_idle_connections);
}

Multi::~Multi() {
  *alive_ = false;
  auto running = std::exchange(running_, {});
  for (auto& [easy, on_done] : running) curl::multi_remove_handle(multi_, easy);
  curl::multi_cleanup(multi_);
  for (auto& [socket, watch] : watches_)
    watch->descriptor.release();  // curl closes the descriptors.
  for (auto& [easy, on_done] : running) on_done(CURLE_ABORTED_BY_CALLBACK);
}

void Multi::add(CURL* easy, std::function<void(CURLcode)> on_done) {
  running_[easy] = std::move(on_done);
  if (auto code = curl::multi_add_handle(multi_, easy); code != CURLM_OK) {
    running_.erase(easy);
    check(code, "libcurl refuses an exchange");
  }
}

void Multi::remove(CURL* easy) {
  if (running_.erase(easy)) curl::multi_remove_handle(multi_, easy);
}

int Multi::on_socket(CURL*, curl_socket_t socket, int what, void* self, void*) {
  static_cast<Multi*>(self)->watch(socket, what);
  return 0;
}

int Multi::on_timer(CURLM*, long milliseconds, void* self) {
  auto& multi = *static_cast<Multi*>(self);
  if (milliseconds < 0) {
    multi.timer_.cancel();
  } else {
    multi.timer_.expires_after(std::chrono::milliseconds(milliseconds));
    multi.timer_.async_wait([&multi, alive = multi.alive_](boost::system::error_code cancelled) {
      if (!cancelled && *alive) multi.drive(CURL_SOCKET_TIMEOUT, 0);
    });
  }
  return 0;
}

void Multi::watch(curl_socket_t socket, int what) {
  auto found = watches_.find(socket);
  if (what == CURL_POLL_REMOVE) {
    if (found == watches_.end()) return;
    found->second->wanted = 0;
    // Cancels the pending waits and leaves the descriptor open for curl.
    found->second->descriptor.release();
    watches_.erase(found);
    return;
  }
  if (found == watches_.end()) {
    found = watches_.emplace(socket, std::make_shared<Watch>(loop_)).first;
    found->second->descriptor.assign(socket);
  }
  found->second->wanted = what;
  arm(socket, found->second);
}

void Multi::arm(curl_socket_t socket, const SharedWatch& watch) {
  if ((watch->wanted & CURL_POLL_IN) && !watch->reading) wait(socket, watch, Direction::read);
  if ((watch->wanted & CURL_POLL_OUT) && !watch->writing) wait(socket, watch, Direction::write);
}

void Multi::wait(curl_socket_t socket, const SharedWatch& watch, Direction direction) {
  const bool for_reading = direction == Direction::read;
  (for_reading ? watch->reading : watch->writing) = true;
  const auto kind = for_reading ? asio::posix::stream_descriptor::wait_read
                                : asio::posix::stream_descriptor::wait_write;
  watch->descriptor.async_wait(kind, [this, socket, watch, for_reading,
                                      alive = alive_](boost::system::error_code error) {
    (for_reading ? watch->reading : watch->writing) = false;
    if (error == asio::error::operation_aborted || !*alive) return;
    if (!(watch->wanted & (for_reading ? CURL_POLL_IN : CURL_POLL_OUT))) return;
    drive(socket, error ? CURL_CSELECT_ERR : for_reading ? CURL_CSELECT_IN : CURL_CSELECT_OUT);
    if (!*alive) return;
    arm(socket, watch);  // If curl has dropped the socket, `wanted` is empty and this does nothing.
  });
}

void Multi::drive(curl_socket_t socket, int events) {
  int still_running = 0;
  busy_ = true;
  const auto code = curl::multi_socket_action(multi_, socket, events, &still_running);
  busy_ = false;
  if (code != CURLM_OK && code != CURLM_BAD_SOCKET) {
    // The multi handle itself has failed, and no exchange would ever end. All exchanges fail with
    // the code by which curl reports a lack of memory.
    auto running = std::exchange(running_, {});
    for (auto& [easy, on_done] : running) curl::multi_remove_handle(multi_, easy);
    for (auto& [easy, on_done] : running) on_done(CURLE_OUT_OF_MEMORY);
    return;
  }
  collect_done();
}

void Multi::collect_done() {
  int left = 0;
  while (CURLMsg* message = curl::multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    CURL* easy = message->easy_handle;
    const CURLcode result = message->data.result;  // The message is freed together with the handle.
    curl::multi_remove_handle(multi_, easy);
    auto found = running_.find(easy);
    if (found == running_.end()) continue;
    auto on_done = std::move(found->second);
    running_.erase(found);
    on_done(result);
  }
}

}  // namespace pipeline::net

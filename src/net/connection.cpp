#include "net/connection.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>

#include "net/transport.hpp"

namespace pipeline::net {

struct Connection::Implementation {
  Implementation(asio::io_context& loop, Request what) : request(std::move(what)), socket(loop) {}
  ~Implementation() {
    boost::system::error_code ignored;
    socket.close(ignored);
    if (easy) curl::easy_cleanup(easy);
    curl::slist_free_all(addresses);
  }
  Implementation(const Implementation&) = delete;
  Implementation& operator=(const Implementation&) = delete;

  void check(CURLcode code) const {
    if (code != CURLE_OK)
      throw TransportError(code,
                           request.url + ": " + (words[0] ? words : curl::easy_strerror(code)));
  }
  void open() {
    static const CURLcode global = curl::global_init(CURL_GLOBAL_DEFAULT);
    check(global);
    easy = curl::easy_init();
    if (!easy) throw TransportError(CURLE_OUT_OF_MEMORY, "libcurl cannot create a handle");
    set_option(easy, request, CURLOPT_ERRORBUFFER, words);
    if (!request.unix_socket.empty()) {
      set_option(easy, request, CURLOPT_UNIX_SOCKET_PATH, request.unix_socket.c_str());
      set_option(easy, request, CURLOPT_PROXY, "");
    }
    if (request.make_socket) {
      curl_socket_t (*create)(void*, curlsocktype, curl_sockaddr*) = &Implementation::on_open;
      set_option(easy, request, CURLOPT_OPENSOCKETFUNCTION, create);
      set_option(easy, request, CURLOPT_OPENSOCKETDATA, static_cast<void*>(this));
    }
    addresses = set_transport(easy, request);
    set_option(easy, request, CURLOPT_HTTPPROXYTUNNEL, 1L);
    set_option(easy, request, CURLOPT_CONNECT_ONLY, 1L);
    const auto code = curl::easy_perform(easy);
    if (error) std::rethrow_exception(error);
    check(code);
    curl_socket_t number = CURL_SOCKET_BAD;
    check(curl::easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &number));
    // Asio gets a descriptor of its own to wait with, because curl closes the other one.
    const int own = ::dup(number);
    if (own < 0) throw core::system_error("cannot watch a connection", errno);
    socket.assign(own);
  }

  static curl_socket_t on_open(void* object, curlsocktype, curl_sockaddr*) noexcept {
    auto& self = *static_cast<Implementation*>(object);
    try {
      return self.request.make_socket();
    } catch (...) {
      self.error = std::current_exception();
      return CURL_SOCKET_BAD;
    }
  }

  Request request;
  CURL* easy = nullptr;
  curl_slist* addresses = nullptr;
  char words[CURL_ERROR_SIZE] = {};  ///< curl's own message for an error.
  std::exception_ptr error;          ///< The exception of `request.make_socket`.
  asio::posix::stream_descriptor socket;
};

Connection::Connection(asio::io_context& loop, Request request)
    : self_(std::make_shared<Implementation>(loop, std::move(request))) {
  self_->open();
}
Connection::~Connection() { close(); }

void Connection::end_writing() {
  if (self_->socket.is_open()) ::shutdown(self_->socket.native_handle(), SHUT_WR);
}

void Connection::close() {
  boost::system::error_code ignored;
  self_->socket.close(ignored);
}

async::Task<std::size_t> Connection::read_some(std::span<char> buffer) {
  const auto self = self_;
  boost::system::error_code error;
  while (self->socket.is_open()) {
    std::size_t count = 0;
    const auto code = curl::easy_recv(self->easy, buffer.data(), buffer.size(), &count);
    if (code == CURLE_OK) co_return count;
    if (code != CURLE_AGAIN) self->check(code);
    co_await self->socket.async_wait(asio::posix::stream_descriptor::wait_read,
                                     asio::redirect_error(asio::use_awaitable, error));
  }
  co_return 0;
}

async::Task<> Connection::write(std::string bytes) {
  const auto self = self_;
  boost::system::error_code error;
  for (std::size_t sent = 0; sent < bytes.size() && self->socket.is_open();) {
    std::size_t count = 0;
    const auto code = curl::easy_send(self->easy, bytes.data() + sent, bytes.size() - sent, &count);
    sent += count;
    if (code == CURLE_OK) continue;
    if (code != CURLE_AGAIN) self->check(code);
    co_await self->socket.async_wait(asio::posix::stream_descriptor::wait_write,
                                     asio::redirect_error(asio::use_awaitable, error));
  }
}

}  // namespace pipeline::net

#include "docker/raw_stream.hpp"

#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>

namespace pipeline::docker {
namespace {

constexpr std::string_view unix_scheme = "unix://";
constexpr std::size_t longest_head = 64 << 10;

/// Returns the number in `HTTP/1.1 101 UPGRADED`; 0 if there is none.
long status_of(const std::string& head) {
  const auto blank = head.find(' ');
  return head.starts_with("HTTP/1.") && blank != head.npos
             ? std::strtol(head.c_str() + blank, nullptr, 10)
             : 0;
}

}  // namespace

async::Task<RawStream> attach_raw(EngineApi& engine, std::string container) {
  const auto& url = engine.endpoint().url;
  if (!url.starts_with(unix_scheme))
    throw core::EnvironmentError(
        "a terminal needs an engine at a Unix socket, and this one is " + url,
        {"open the shell on that machine, where the state folder has to be, too"});
  const auto* info = co_await engine.info();
  const std::string what = "attach to the container " + container.substr(0, 12);
  RawStream stream(co_await asio::this_coro::executor);
  boost::system::error_code error;
  const asio::local::stream_protocol::endpoint socket(url.substr(unix_scheme.size()));
  co_await stream.async_connect(socket, asio::redirect_error(asio::use_awaitable, error));
  if (error) throw core::EnvironmentError("cannot " + what + ": " + error.message());
  const auto request = "POST /v" + info->api_version + "/containers/" + container +
                       "/attach?stream=1&stdin=1&stdout=1&stderr=1 HTTP/1.1\r\nHost: engine\r\n"
                       "Connection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 0\r\n\r\n";
  co_await asio::async_write(stream, asio::buffer(request),
                             asio::redirect_error(asio::use_awaitable, error));
  std::string head;
  // The head has no more than its end in the buffer: the container has not been started.
  if (!error)
    co_await asio::async_read_until(stream, asio::dynamic_buffer(head, longest_head), "\r\n\r\n",
                                    asio::redirect_error(asio::use_awaitable, error));
  if (error) throw core::EnvironmentError("cannot " + what + ": " + error.message());
  const auto status = status_of(head);
  if (status != 101 && status != 200)
    throw EngineError(
        status, "cannot " + what + ": the engine responded " + head.substr(0, head.find("\r\n")));
  co_return stream;
}

}  // namespace pipeline::docker

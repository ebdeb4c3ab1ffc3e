#include "docker/raw_stream.hpp"

#include <array>
#include <cstdlib>

#include "async/timeout.hpp"

namespace pipeline::docker {
namespace {

constexpr std::size_t max_stream_head = 64 << 10;

/// Returns the number in `HTTP/1.1 101 UPGRADED`; 0 if there is none.
long status_of(const std::string& head) {
  const auto blank = head.find(' ');
  return head.starts_with("HTTP/1.") && blank != head.npos
             ? std::strtol(head.c_str() + blank, nullptr, 10)
             : 0;
}

}  // namespace

async::Task<std::unique_ptr<net::Connection>> attach_raw(EngineApi& engine, std::string container) {
  const auto* info = co_await engine.info();
  const std::string what = "attach to the container " + container.substr(0, 12);
  auto stream = engine.open_connection();
  std::string head;
  std::optional<std::string> lost;
  bool is_late = false;
  async::Timeout limit(co_await asio::this_coro::executor, [&] {
    is_late = true;
    stream->close();
  });
  limit.start(engine.limits().answer);
  try {
    auto request = "POST /v" + info->api_version + "/containers/" + container +
                   "/attach?stream=1&stdin=1&stdout=1&stderr=1 HTTP/1.1\r\nHost: engine\r\n"
                   "Connection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 0\r\n\r\n";
    co_await stream->write(std::move(request));
    // Nothing follows the head: the container has not been started.
    std::array<char, 4096> buffer;
    while (head.find("\r\n\r\n") == head.npos && head.size() < max_stream_head) {
      const auto count = co_await stream->read_some(buffer);
      if (count == 0) break;
      head.append(buffer.data(), count);
    }
  } catch (const net::TransportError& error) {
    lost = error.what();
  }
  const bool is_whole = head.find("\r\n\r\n") != head.npos;
  if (is_late) lost = "no answer came in time";
  if (!lost && head.size() >= max_stream_head) lost = "the head of its answer is too long";
  if (!lost && !is_whole) lost = "it has closed the connection";
  if (lost) throw core::EnvironmentError("cannot " + what + ": " + *lost);
  const auto status = status_of(head);
  if (status != 101 && status != 200)
    throw EngineError(
        status, "cannot " + what + ": the engine responded " + head.substr(0, head.find("\r\n")));
  co_return stream;
}

}  // namespace pipeline::docker

#include "kubernetes_api/channels.hpp"

#include <algorithm>
#include <array>
#include <random>

#include "async/timeout.hpp"
#include "core/base64.hpp"
#include "net/silence.hpp"

namespace pipeline::kubernetes_api {
namespace {

constexpr unsigned continuation = 0, text_frame = 1, binary_frame = 2, close_frame = 8,
                   ping_frame = 9, pong_frame = 10;
constexpr std::size_t max_message = std::size_t{16} << 20, max_head = 64 << 10;  ///< Bytes.
constexpr const char* subprotocol = "v4.channel.k8s.io";

std::string random_bytes(std::size_t count) {
  std::random_device random;
  std::string bytes;
  while (bytes.size() < count) bytes += static_cast<char>(random());
  return bytes;
}

core::EnvironmentError protocol_violation(const std::string& why) {
  return core::EnvironmentError("the cluster's server violates the WebSocket protocol: " + why);
}

/// Returns the HTTP request that asks the server to switch to the WebSocket protocol. A header
/// `Host` of the request takes precedence over the host of its URL.
std::string upgrade_request(const net::Request& request) {
  const auto scheme_end = request.url.find("://") + 3;
  const auto path = std::min(request.url.find('/', scheme_end), request.url.size());
  std::string text = "GET " + request.url.substr(path) + " HTTP/1.1\r\n";
  if (std::ranges::none_of(request.headers,
                           [](const auto& header) { return header.starts_with("Host:"); }))
    text += "Host: " + host_and_port(request.url) + "\r\n";
  for (const auto& header : request.headers) text += header + "\r\n";
  return text +
         "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
         "Sec-WebSocket-Key: " +
         core::encode_base64(random_bytes(16)) + "\r\nSec-WebSocket-Protocol: " + subprotocol +
         "\r\n\r\n";
}

/// Reads the rest of a response that refuses the upgrade, up to `max_head` bytes of its body.
/// @param head the status line and the headers
/// @param body the bytes of the body that have been read already
async::Task<net::Response> read_refusal(net::Connection& connection, std::string head,
                                        std::string body) {
  net::Response response;
  const auto blank = std::min(head.find(' '), head.size());
  response.status = std::strtol(head.c_str() + blank, nullptr, 10);
  std::array<char, 4096> buffer;
  while (body.size() < max_head) {
    const auto open = std::ranges::count(body, '{'), closed = std::ranges::count(body, '}');
    // The JSON object is complete; the server does not close the connection after it.
    if (open > 0 && open == closed) break;
    const auto count = co_await connection.read_some(buffer);
    if (count == 0) break;
    body.append(buffer.data(), count);
  }
  response.body = std::move(body);
  co_return response;
}

}  // namespace

async::Task<std::unique_ptr<Channels>> open_channels(Client& client, std::string what,
                                                     std::string path) {
  ApiCall call(what, "GET", std::move(path));
  call.accept = "*/*";  // A WebSocket is not JSON, which is what calls accept otherwise.
  auto request = co_await client.request_of(std::move(call));
  auto upgrade = upgrade_request(request);
  auto connection = std::make_unique<net::Connection>(client.loop(), std::move(request));
  bool is_late = false;
  async::Timeout limit(client.loop().get_executor(), [&] {
    is_late = true;
    connection->close();
  });
  limit.start(net::max_silence());
  co_await connection->write(std::move(upgrade));
  std::string head;
  std::array<char, 4096> buffer;
  auto end = head.npos;
  while ((end = head.find("\r\n\r\n")) == head.npos && head.size() < max_head) {
    const auto count = co_await connection->read_some(buffer);
    if (count == 0)
      throw is_late ? core::EnvironmentError("cannot " + what + ": no answer came in time")
                    : protocol_violation("it has closed the connection");
    head.append(buffer.data(), count);
  }
  if (end == head.npos) throw protocol_violation("its response is too long");
  auto rest = head.substr(end + 4);
  head.resize(end);
  if (!head.starts_with("HTTP/1.1 101")) {
    const auto response = co_await read_refusal(*connection, head, std::move(rest));
    throw_refusal(what, response);
  }
  co_return std::make_unique<Channels>(std::move(connection), std::move(rest));
}

async::Task<> Channels::send(Channel channel, std::string bytes) {
  bytes.insert(bytes.begin(), static_cast<char>(channel));
  co_await send_frame(binary_frame, std::move(bytes));
}

async::Task<> Channels::send_frame(unsigned opcode, std::string payload) {
  std::string frame(1, static_cast<char>(0x80 | opcode));
  constexpr char masked = static_cast<char>(0x80);
  const auto size = payload.size();
  const unsigned length_bytes = size < 126 ? 0 : size < 65536 ? 2 : 8;
  frame += static_cast<char>(masked | static_cast<char>(length_bytes == 0   ? size
                                                        : length_bytes == 2 ? 126
                                                                            : 127));
  for (unsigned i = length_bytes; i-- > 0;) frame += static_cast<char>(size >> (8 * i));
  const auto mask = random_bytes(4);
  frame += mask;
  for (std::size_t i = 0; i < size; ++i) frame += static_cast<char>(payload[i] ^ mask[i % 4]);
  co_await writer_.acquire(0);
  const async::Permit permit(writer_);
  co_await connection_->write(std::move(frame));
}

/// Reads until `bytes_` has at least `count` bytes; returns false if the connection ends before.
async::Task<bool> Channels::fill_buffer(std::size_t count) {
  std::array<char, 65536> buffer;
  while (bytes_.size() < count) {
    const auto got = co_await connection_->read_some(buffer);
    if (got == 0) co_return false;
    bytes_.append(buffer.data(), got);
  }
  co_return true;
}

async::Task<std::optional<Channels::Frame>> Channels::next_frame() {
  std::optional<Frame> frame;
  bool is_available = co_await fill_buffer(2);
  if (!is_available) co_return frame;
  const auto byte = [this](std::size_t at) { return static_cast<unsigned char>(bytes_[at]); };
  const unsigned first = byte(0), second = byte(1);
  if (second & 0x80) throw protocol_violation("a frame is masked");
  std::uint64_t size = second & 0x7f;
  const std::size_t length_bytes = size == 126 ? 2 : size == 127 ? 8 : 0;
  is_available = co_await fill_buffer(2 + length_bytes);
  if (!is_available) co_return frame;
  if (length_bytes > 0) size = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) size = size << 8 | byte(2 + i);
  if (size > max_message) throw protocol_violation("a message is too large");
  const auto head = 2 + length_bytes;
  is_available = co_await fill_buffer(head + size);
  if (!is_available) co_return frame;
  frame.emplace();
  frame->is_last = first & 0x80;
  frame->opcode = first & 0x0f;
  frame->payload = bytes_.substr(head, size);
  bytes_.erase(0, head + size);
  co_return frame;
}

async::Task<std::optional<std::pair<Channel, std::string>>> Channels::receive() {
  std::optional<std::pair<Channel, std::string>> message;
  std::string bytes;
  for (;;) {
    auto frame = co_await next_frame();
    if (!frame || frame->opcode == close_frame) co_return message;
    if (frame->opcode == ping_frame) co_await send_frame(pong_frame, std::move(frame->payload));
    if (frame->opcode != continuation && frame->opcode != text_frame &&
        frame->opcode != binary_frame)
      continue;
    bytes += frame->payload;
    if (bytes.size() > max_message) throw protocol_violation("a message is too large");
    if (!frame->is_last || bytes.empty()) continue;
    message.emplace(static_cast<Channel>(bytes.front()), bytes.substr(1));
    co_return message;
  }
}

}  // namespace pipeline::kubernetes_api

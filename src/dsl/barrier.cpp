#include "dsl/barrier.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "core/file.hpp"

namespace pipeline::dsl {
namespace {

constexpr int look_again_ms = 100;

/// Returns the address as one of IPv6, which all of these sockets are; an empty text is any.
sockaddr_in6 address_of(const std::string& text, unsigned port) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(static_cast<std::uint16_t>(port));
  const auto mapped = (text.find(':') == text.npos ? "::ffff:" : "") + text;
  if (!text.empty() && ::inet_pton(AF_INET6, mapped.c_str(), &address.sin6_addr) != 1)
    throw std::runtime_error("'" + text + "' is not an IP address");
  return address;
}

core::Descriptor new_socket() {
  core::Descriptor made(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int off = 0, on = 1;
  ::setsockopt(made.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  ::setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!made) throw core::system_error("cannot make a socket", errno);
  return made;
}

/// Waits until the socket has something to read.
void await_news(int file, const std::stop_token& stop) {
  pollfd news{file, POLLIN, 0};
  while (::poll(&news, 1, look_again_ms) <= 0)
    if (stop.stop_requested())
      throw std::runtime_error("the step is asked to end while it waits at a barrier");
}

/// The socket of rank 0, on which those wait that are earlier than it.
int listen_at(unsigned port) {
  static const core::Descriptor listener = [&] {
    auto made = new_socket();
    const auto any = address_of({}, port);
    const auto* at = reinterpret_cast<const sockaddr*>(&any);
    if (::bind(made.get(), at, sizeof any) != 0 || ::listen(made.get(), SOMAXCONN) != 0)
      throw core::system_error("cannot listen at the port " + std::to_string(port), errno);
    return made;
  }();
  return listener.get();
}

bool is_let_go(const BarrierPlace& place, const std::stop_token& stop) {
  const auto main = address_of(place.address, place.port);
  const auto mine = new_socket();
  if (::connect(mine.get(), reinterpret_cast<const sockaddr*>(&main), sizeof main) != 0)
    return false;
  await_news(mine.get(), stop);
  char byte = 0;
  return ::recv(mine.get(), &byte, 1, 0) == 1;
}

}  // namespace

void wait_for_all(const BarrierPlace& place, const std::stop_token& stop) {
  if (place.ranks <= 1) return;
  if (place.rank > 0) {
    while (!is_let_go(place, stop)) {
      if (stop.stop_requested())
        throw std::runtime_error("the step is asked to end while it waits at a barrier");
      std::this_thread::sleep_for(std::chrono::milliseconds(look_again_ms / 2));
    }
    return;
  }
  const int listener = listen_at(place.port);
  std::vector<core::Descriptor> arrived;
  while (arrived.size() + 1 < place.ranks) {
    await_news(listener, stop);
    core::Descriptor one(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (one) arrived.push_back(std::move(one));
  }
  for (const auto& one : arrived) ::send(one.get(), ".", 1, MSG_NOSIGNAL);
}

}  // namespace pipeline::dsl

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

[[noreturn]] void stop_waiting() {
  throw std::runtime_error("the step is asked to end while it waits at a barrier");
}

/// Returns the address in IPv6's form, because all of these sockets are of IPv6.
/// @param text an IPv4 or IPv6 address; empty: any address of this machine
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
  if (!made) throw core::system_error("cannot make a socket", errno);
  const int off = 0, on = 1;
  ::setsockopt(made.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  ::setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  return made;
}

/// Waits until the socket is readable. Throws std::runtime_error once a stop is requested.
void wait_until_readable(int file, const std::stop_token& stop) {
  pollfd events{file, POLLIN, 0};
  while (::poll(&events, 1, look_again_ms) <= 0)
    if (stop.stop_requested()) stop_waiting();
}

/// Returns the socket of rank 0. Processes that arrive before rank 0 does wait in its queue.
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

/// Connects to rank 0, and waits for the byte by which rank 0 releases this process. Returns false
/// if the connection fails or ends before: rank 0 may not listen yet.
bool wait_for_release(const BarrierMember& member, const std::stop_token& stop) {
  const auto root = address_of(member.address, member.port);
  const auto connection = new_socket();
  if (::connect(connection.get(), reinterpret_cast<const sockaddr*>(&root), sizeof root) != 0)
    return false;
  wait_until_readable(connection.get(), stop);
  char byte = 0;
  return ::recv(connection.get(), &byte, 1, 0) == 1;
}

}  // namespace

void wait_for_all(const BarrierMember& member, const std::stop_token& stop) {
  if (member.ranks <= 1) return;
  if (member.rank > 0) {
    while (!wait_for_release(member, stop)) {
      if (stop.stop_requested()) stop_waiting();
      std::this_thread::sleep_for(std::chrono::milliseconds(look_again_ms / 2));
    }
    return;
  }
  const int listener = listen_at(member.port);
  std::vector<core::Descriptor> arrived;
  while (arrived.size() + 1 < member.ranks) {
    wait_until_readable(listener, stop);
    core::Descriptor other(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (other) arrived.push_back(std::move(other));
  }
  for (const auto& other : arrived) ::send(other.get(), ".", 1, MSG_NOSIGNAL);
}

}  // namespace pipeline::dsl

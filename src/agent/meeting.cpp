#include "agent/meeting.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <optional>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace pipeline::agent {
namespace {

// Agents send lines. The agents of other nodes send `ID NODE` once to node 0, then `w`, `f` and `e`
// for the states. Node 0 sends `b ADDRESS,...` (the addresses of all nodes), `s` and `x` for the
// commands begin, stop and end.
constexpr char begin_line = 'b', stop_line = 's', end_line = 'x';
constexpr std::size_t max_meeting_line = 512, max_begin_line = 1 << 20;  ///< Bytes.
constexpr int connect_seconds = 2;
constexpr std::size_t max_strangers = 64;  ///< Connections that have not sent `ID NODE` yet.

char letter_of(Meeting::State state) {
  return state == Meeting::State::waits ? 'w' : state == Meeting::State::failed ? 'f' : 'e';
}

/// Returns the address of a socket; nothing for a text that is not an IP address. An empty text is
/// any address of this machine.
std::optional<sockaddr_in6> address_of(const std::string& text, const char* port) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(static_cast<std::uint16_t>(atoi(port)));
  if (text.empty()) return address;  // IPv6's `::`
  const bool is_ipv4 = text.find(':') == std::string::npos;
  if (inet_pton(AF_INET6, ((is_ipv4 ? "::ffff:" : "") + text).c_str(), &address.sin6_addr) != 1)
    return std::nullopt;
  return address;
}

/// Returns the IPv4 address that is mapped in an IPv6 address, for a kernel without IPv6.
sockaddr_in ipv4_address_of(const sockaddr_in6& address) {
  sockaddr_in ipv4{};
  ipv4.sin_family = AF_INET;
  ipv4.sin_port = address.sin6_port;
  memcpy(&ipv4.sin_addr, &address.sin6_addr.s6_addr[12], sizeof ipv4.sin_addr);
  return ipv4;
}

/// Returns a socket that listens at the address or is connected to it; -1: errno says why not.
int open_socket(const sockaddr_in6& address, bool listens) {
  int file = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool is_ipv4 = file < 0;
  if (is_ipv4) file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1, off = 0;
  setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(file, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  const timeval limit{connect_seconds, 0};  // Also limits connect(2); see socket(7).
  setsockopt(file, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  const auto ipv4 = ipv4_address_of(address);
  const auto* at = is_ipv4 ? reinterpret_cast<const sockaddr*>(&ipv4)
                           : reinterpret_cast<const sockaddr*>(&address);
  const socklen_t size = is_ipv4 ? sizeof ipv4 : sizeof address;
  const bool good = listens ? bind(file, at, size) == 0 && listen(file, SOMAXCONN) == 0
                            : connect(file, at, size) == 0;
  const int error = errno;
  if (good) {
    fcntl(file, F_SETFL, O_NONBLOCK);
    return file;
  }
  if (file >= 0) close(file);
  errno = error;
  return -1;
}

void send_text(int file, const std::string& text) {
  if (file >= 0) send(file, text.data(), text.size(), MSG_NOSIGNAL);
}

/// Returns the IP address at an end of the connection. @param get getpeername or getsockname
std::string address_at(int file, int (*get)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage at{};
  socklen_t size = sizeof at;
  char text[INET6_ADDRSTRLEN] = "127.0.0.1";
  get(file, reinterpret_cast<sockaddr*>(&at), &size);
  if (at.ss_family == AF_INET)
    inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in*>(&at)->sin_addr, text, sizeof text);
  if (at.ss_family == AF_INET6)
    inet_ntop(AF_INET6, &reinterpret_cast<sockaddr_in6*>(&at)->sin6_addr, text, sizeof text);
  const bool is_ipv4 = strncmp(text, "::ffff:", strlen("::ffff:")) == 0;
  return text + (is_ipv4 ? strlen("::ffff:") : 0);
}

}  // namespace

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Meeting::Meeting(unsigned node, unsigned nodes, std::string id)
    : node_(node), nodes_(nodes), id_(std::move(id)), states_(nodes, 0) {}

Meeting::~Meeting() {
  for (const auto& peer : peers_)
    if (peer.file >= 0) close(peer.file);
  if (listener_ >= 0) close(listener_);
}

std::string Meeting::connect(const char* address, const char* port) {
  if (nodes_ == 1) {
    is_connected_ = true;
    return {};
  }
  if (node_ > 0 && !*address) return "its address is not known";
  const auto at = address_of(node_ == 0 ? "" : address, port);
  if (!at) return "it is not an IP address";
  const int file = open_socket(*at, node_ == 0);
  if (file < 0) return strerror(errno);
  is_connected_ = true;
  if (node_ == 0) {
    listener_ = file;
  } else {
    peers_.push_back({file});
    send_text(file, id_ + " " + std::to_string(node_) + "\n");
  }
  return {};
}

bool Meeting::is_whole() const {
  if (is_broken_) return false;
  for (std::size_t node = 1; node_ == 0 && node < nodes_; ++node)
    if (states_[node] == 0) return false;
  return true;
}

void Meeting::tell(State state) {
  if (node_ == 0) return record_state(0, state);
  for (const auto& peer : peers_) send_text(peer.file, std::string{letter_of(state), '\n'});
}

void Meeting::watch(std::vector<pollfd>& files) const {
  if (listener_ >= 0) files.push_back({listener_, POLLIN, 0});
  for (const auto& peer : peers_)
    if (peer.file >= 0) files.push_back({peer.file, POLLIN, 0});
}

Meeting::Command Meeting::next() {
  accept_all();
  for (auto& peer : peers_)
    if (peer.file >= 0 && !read(peer)) {
      close(peer.file);
      peer.file = -1;
      is_broken_ |= node_ > 0 || peer.node > 0;
    }
  std::erase_if(peers_, [](const Peer& peer) { return peer.file < 0; });
  if (commands_.empty()) return Command::none;
  const auto first = commands_.front();
  commands_.erase(commands_.begin());
  return first;
}

/// Reads the available bytes and handles their lines. Returns false at the end of the connection,
/// or if a line is too long.
bool Meeting::read(Peer& peer) {
  char bytes[max_meeting_line];
  const ssize_t count = recv(peer.file, bytes, sizeof bytes, MSG_DONTWAIT);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  peer.bytes.append(bytes, static_cast<std::size_t>(count));
  handle_lines(peer);
  return count > 0 && peer.bytes.size() < (node_ > 0 ? max_begin_line : max_meeting_line);
}

void Meeting::accept_all() {
  if (listener_ < 0) return;
  for (std::size_t count = 0; count < max_strangers; ++count) {
    const int file = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (file < 0) return;
    drop_stranger();
    peers_.push_back({file});
  }
}

/// Closes the oldest stranger's connection if there are too many: a node sends its `ID NODE` as
/// soon as it connects, so that the oldest stranger is most likely not a node.
void Meeting::drop_stranger() {
  Peer* first = nullptr;
  std::size_t strangers = 0;
  for (auto& peer : peers_) {
    if (peer.file < 0 || peer.node > 0) continue;
    if (!first) first = &peer;
    ++strangers;
  }
  if (strangers < max_strangers || (read(*first) && first->node > 0)) return;
  close(first->file);
  first->file = -1;
}

bool Meeting::is_connected_to(unsigned long node) const {
  for (const auto& peer : peers_)
    if (peer.node == node) return true;
  return false;
}

void Meeting::handle_lines(Peer& peer) {
  for (std::size_t end; (end = peer.bytes.find('\n')) != std::string::npos;) {
    const auto line = peer.bytes.substr(0, end);
    peer.bytes.erase(0, end + 1);
    if (node_ > 0) {
      const char letter = line.empty() ? ' ' : line[0];
      if (letter == begin_line && line.size() > 2) addresses_ = split_at_commas(line.substr(2));
      commands_.push_back(letter == begin_line  ? Command::begin
                          : letter == stop_line ? Command::stop
                          : letter == end_line  ? Command::end
                                                : Command::none);
    } else if (peer.node > 0) {
      for (const auto state : {State::waits, State::failed, State::has_ended})
        if (line == std::string{letter_of(state)}) record_state(peer.node, state);
    } else {
      const auto space = line.rfind(' ');
      const auto node = space == std::string::npos ? 0 : strtoul(&line[space + 1], nullptr, 10);
      const bool is_known =
          node > 0 && node < nodes_ && line.compare(0, space, id_) == 0 && !is_connected_to(node);
      if (is_known)
        peer.node = static_cast<unsigned>(node);
      else
        shutdown(peer.file, SHUT_RDWR);
    }
  }
}

/// Records the state of a node, and sends the command that follows from the states to all nodes.
void Meeting::record_state(unsigned node, State state) {
  states_[node] = letter_of(state);
  if (state == State::failed) {
    if (!is_stopping_) send_to_all({stop_line});
    is_stopping_ = true;
    return;
  }
  for (const char each : states_)
    if (each != letter_of(state)) return;
  is_stopping_ = false;
  // Any letter but those of the states: each node has to say `waits` again before the next begin.
  if (state == State::waits) states_.assign(nodes_, 'r');
  send_to_all(state == State::waits ? begin_text() : std::string{end_line});
}

/// Returns the begin command with the addresses of all nodes, which are all connected by now.
std::string Meeting::begin_text() {
  addresses_.assign(nodes_, "127.0.0.1");
  for (const auto& peer : peers_) {
    if (peer.node == 0) continue;
    addresses_[peer.node] = address_at(peer.file, getpeername);
    if (peer.node == 1) addresses_[0] = address_at(peer.file, getsockname);
  }
  std::string text{begin_line, ' '};
  for (const auto& address : addresses_) text += (text.size() > 2 ? "," : "") + address;
  return text;
}

void Meeting::send_to_all(const std::string& command) {
  for (const auto& peer : peers_)
    if (peer.node > 0) send_text(peer.file, command + "\n");
  commands_.push_back(command[0] == begin_line  ? Command::begin
                      : command[0] == stop_line ? Command::stop
                                                : Command::end);
}

}  // namespace pipeline::agent

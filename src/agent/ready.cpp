#include "agent/ready.hpp"

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace pipeline::agent {
namespace {

constexpr int max_answer_wait = 2000;  // Milliseconds.
// Time limit for the rest of an answer after its status: on a node without idle processors, a
// server pauses. A cluster's node ends the check after ten seconds.
constexpr std::chrono::milliseconds max_rest_wait{5000};
constexpr int max_rest_parts = 16;  // A server may send without end.

/// Returns a connection, or -1 with errno set.
int connect_to(const sockaddr* address, socklen_t size) {
  const int connection = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (connection < 0) return -1;
  if (connect(connection, address, size) == 0) return connection;
  int error = errno;
  if (error == EINPROGRESS) {
    pollfd news{connection, POLLOUT, 0};
    socklen_t length = sizeof error;
    if (poll(&news, 1, max_answer_wait) <= 0)
      error = ETIMEDOUT;
    else
      getsockopt(connection, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error == 0) return connection;
  }
  close(connection);
  errno = error;
  return -1;
}

/// Reads the rest of the answer: a server whose answer is cut off may report an error in its log.
void read_rest(int connection) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + max_rest_wait;
  char part[4096];
  pollfd news{connection, POLLIN, 0};
  for (int i = 0; i < max_rest_parts; ++i) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0 || poll(&news, 1, static_cast<int>(left)) <= 0) return;
    if (recv(connection, part, sizeof part, 0) <= 0) return;
  }
}

/// Sends a request, and returns the status of the answer; 0: there is none.
int status_of(int connection, const char* port, const char* path) {
  char request[2048];
  const int size =
      snprintf(request, sizeof request,
               "GET %s HTTP/1.1\r\nHost: localhost:%s\r\nUser-Agent: pipe\r\nConnection: "
               "close\r\n\r\n",
               path, port);
  if (size <= 0 || size >= static_cast<int>(sizeof request) ||
      send(connection, request, static_cast<std::size_t>(size), MSG_NOSIGNAL) != size)
    return 0;
  char answer[32] = {};
  std::size_t got = 0;
  while (got + 1 < sizeof answer) {
    pollfd news{connection, POLLIN, 0};
    if (poll(&news, 1, max_answer_wait) <= 0) break;
    const ssize_t count = recv(connection, answer + got, sizeof answer - 1 - got, 0);
    if (count <= 0) break;
    got += static_cast<std::size_t>(count);
  }
  read_rest(connection);
  int status = 0;
  return sscanf(answer, "HTTP/%*d.%*d %d", &status) == 1 ? status : 0;
}

bool is_ready(const sockaddr* address, socklen_t size, const char* port, const char* path,
              char (&why)[256]) {
  const int connection = connect_to(address, size);
  if (connection < 0) {
    snprintf(why, sizeof why, "port %s: %s", port, strerror(errno));
    return false;
  }
  const int status = path ? status_of(connection, port, path) : 200;
  close(connection);
  if (status == 0)
    snprintf(why, sizeof why, "port %s has not answered GET %.100s by HTTP", port, path);
  else
    snprintf(why, sizeof why, "port %s answers GET %.100s with %d", port, path ? path : "", status);
  return status > 0 && status < 400;
}

}  // namespace

int look_if_ready(const char* port, const char* path) {
  char why[256] = "there is no network";
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) all = nullptr;
  bool ready = false;
  const auto number = htons(static_cast<std::uint16_t>(strtoul(port, nullptr, 10)));
  for (const auto* each = all; each && !ready; each = each->ifa_next) {
    if (!each->ifa_addr || (each->ifa_flags & IFF_LOOPBACK) || !(each->ifa_flags & IFF_UP))
      continue;
    if (each->ifa_addr->sa_family == AF_INET) {
      auto address = *reinterpret_cast<const sockaddr_in*>(each->ifa_addr);
      address.sin_port = number;
      ready =
          is_ready(reinterpret_cast<const sockaddr*>(&address), sizeof address, port, path, why);
    }
  }
  if (all) freeifaddrs(all);
  if (!ready) printf("%s\n", why);
  return ready ? 0 : 1;
}

}  // namespace pipeline::agent

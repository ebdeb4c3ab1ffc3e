#include "stager/http.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <mutex>
#include <utility>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nss.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "core/file.hpp"
#include "core/text.hpp"

namespace pipeline::stager {
namespace {

constexpr int connect_seconds = 10;                   ///< Time limit of a connection's beginning.
constexpr std::uint64_t min_bytes_per_second = 1024;  ///< Fewer count as silence.
constexpr std::size_t max_idle = 16;                  ///< Connections.
constexpr std::size_t max_head = 256 << 10;  ///< Bytes, including responses 1xx before the head.

/// The parts of a URL.
struct Target {
  bool tls;
  std::string host, port, path;
  std::string host_header;  ///< Value of the header Host: host and port as the URL has them.
};

Target target_of(const std::string& url) {
  Target target;
  const auto separator = url.find("://");
  target.tls = url.starts_with("https://");
  const auto rest = separator == url.npos ? url : url.substr(separator + 3);
  target.host_header = rest.substr(0, rest.find('/'));
  target.path = rest.substr(target.host_header.size());
  if (target.path.empty()) target.path = "/";
  const auto bracket = target.host_header.find(']');
  const auto colon = target.host_header.find(':', bracket == std::string::npos ? 0 : bracket);
  target.host = target.host_header.substr(0, colon);
  target.port = colon == std::string::npos ? (target.tls ? "443" : "80")
                                           : target.host_header.substr(colon + 1);
  if (target.host.starts_with('[')) target.host = target.host.substr(1, target.host.size() - 2);
  return target;
}

/// Returns the text of OpenSSL's last error.
std::string tls_error() {
  std::array<char, 256> text{};
  const auto error = ERR_peek_last_error();
  if (!error) return "the connection was cut";
  ERR_error_string_n(error, text.data(), text.size());
  const std::string words = text.data();
  return words.substr(words.rfind(':') + 1);
}

bool is_address(const std::string& host) {
  return host.find(':') != host.npos || host.find_first_not_of("0123456789.") == host.npos;
}

}  // namespace

class Connection {
 public:
  Connection(const Target& target, const std::string& authorities,
             std::chrono::milliseconds silence)
      : host_(target.host_header), tls_(target.tls), silence_(silence) {
    open_socket(target);
    if (tls_) begin_tls(target, authorities);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool leads_to(const Target& target) const {
    return host_ == target.host_header && tls_ == target.tls;
  }
  const std::string& host() const { return host_; }

  /// Begins a call, which counts its bytes and waits anew.
  void begin_call() {
    received_ = 0;
    restart_pace();
  }

  /// Returns false if the other end accepts no more data, or hardly any; it may have sent a
  /// response.
  bool write(std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t count = 0;
      const auto begin = std::chrono::steady_clock::now();
      if (ssl_) {
        ERR_clear_error();
        count = SSL_write(ssl_.get(), bytes.data(),
                          static_cast<int>(std::min<std::size_t>(bytes.size(), 1 << 20)));
      } else {
        count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR) continue;
      }
      if (count <= 0 || !keeps_pace(begin, count)) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

  /// Returns true if a response has begun to arrive, or the connection has ended. With TLS this is
  /// not known, because bytes can be of TLS itself.
  bool is_answered() const {
    pollfd ready{socket_.get(), POLLIN, 0};
    return !tls_ && ::poll(&ready, 1, 0) > 0;
  }

  /// Returns received bytes; an empty text at the end of the stream.
  std::string_view read() {
    ssize_t count = 0;
    const auto begin = std::chrono::steady_clock::now();
    do {
      if (ssl_) {
        ERR_clear_error();
        errno = 0;  // SSL_read() sets errno only if a system call has failed.
        count = SSL_read(ssl_.get(), buffer_.data(), static_cast<int>(buffer_.size()));
        if (count <= 0) {
          const int why = SSL_get_error(ssl_.get(), static_cast<int>(count));
          if (why == SSL_ERROR_ZERO_RETURN) return {};
          if (why == SSL_ERROR_SYSCALL && errno == EINTR) continue;
          throw NoAnswer("the connection to " + host_ +
                             " was cut: " + (errno == EAGAIN ? silence_text() : tls_error()),
                         true);
        }
      } else {
        count = ::recv(socket_.get(), buffer_.data(), buffer_.size(), 0);
      }
    } while (count < 0 && errno == EINTR);
    if (count < 0)
      throw NoAnswer("the connection to " + host_ +
                         " was cut: " + (errno == EAGAIN ? silence_text() : std::strerror(errno)),
                     true);
    // A server may think before it responds, up to `silence_`.
    if (std::exchange(received_, received_ + static_cast<std::uint64_t>(count)) == 0)
      restart_pace();
    else if (!keeps_pace(begin, count))
      throw NoAnswer("the connection to " + host_ + " was cut: it sent hardly any bytes", true);
    return {buffer_.data(), static_cast<std::size_t>(count)};
  }
  /// Returns the number of bytes received since begin_call().
  std::uint64_t received() const { return received_; }

 private:
  std::string silence_text() const {
    return "it was silent for " + std::to_string(silence_.count() / 1000) + " s";
  }

  void restart_pace() {
    waited_ = {};
    passed_ = 0;
  }

  /// Counts bytes and the wait for them. Returns false if too few bytes have passed in `silence_`
  /// of waiting; the time that this program takes to handle the bytes does not count.
  bool keeps_pace(std::chrono::steady_clock::time_point begin, ssize_t bytes) {
    waited_ += std::chrono::steady_clock::now() - begin;
    passed_ += static_cast<std::uint64_t>(bytes);
    if (waited_ < silence_) return true;
    const auto least = min_bytes_per_second * static_cast<std::uint64_t>(silence_.count()) / 1000;
    const bool is_kept = passed_ >= least;
    restart_pace();
    return is_kept;
  }

  void open_socket(const Target& target) {
    // The image may configure name services that a static program cannot load.
    static std::once_flag is_configured;
    std::call_once(is_configured, [] { __nss_configure_lookup("hosts", "files dns"); });
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (const int error = getaddrinfo(target.host.c_str(), target.port.c_str(), &hints, &found);
        error != 0)
      throw NoAnswer("cannot find the host " + target.host + ": " + gai_strerror(error), true);
    int error = 0;
    for (const addrinfo* each = found; each && !socket_; each = each->ai_next) {
      core::Descriptor socket(
          ::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      if (!socket) continue;
      error = ::connect(socket.get(), each->ai_addr, each->ai_addrlen) == 0 ? 0 : errno;
      if (error == EINPROGRESS) {
        pollfd ready{socket.get(), POLLOUT, 0};
        socklen_t size = sizeof error;
        if (::poll(&ready, 1, connect_seconds * 1000) <= 0)
          error = ETIMEDOUT;
        else
          getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
      }
      if (error == 0) socket_ = std::move(socket);
    }
    freeaddrinfo(found);
    if (!socket_) throw NoAnswer("cannot connect to " + host_ + ": " + std::strerror(error), true);
    const int one = 1;
    const timeval silence{silence_.count() / 1000, silence_.count() % 1000 * 1000};
    fcntl(socket_.get(), F_SETFL, fcntl(socket_.get(), F_GETFL) & ~O_NONBLOCK);
    setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof silence);
    setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &silence, sizeof silence);
  }

  void begin_tls(const Target& target, const std::string& authorities) {
    context_.reset(SSL_CTX_new(TLS_client_method()));
    if (!context_) throw NoAnswer("TLS is not available: " + tls_error(), false);
    SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    BIO* text = BIO_new_mem_buf(authorities.data(), static_cast<int>(authorities.size()));
    while (X509* authority = PEM_read_bio_X509(text, nullptr, nullptr, nullptr)) {
      X509_STORE_add_cert(SSL_CTX_get_cert_store(context_.get()), authority);
      X509_free(authority);
    }
    BIO_free(text);
    ERR_clear_error();
    ssl_.reset(SSL_new(context_.get()));
    if (is_address(target.host)) {
      X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), target.host.c_str());
    } else {
      SSL_set_tlsext_host_name(ssl_.get(), target.host.c_str());
      SSL_set1_host(ssl_.get(), target.host.c_str());
    }
    SSL_set_fd(ssl_.get(), socket_.get());
    if (SSL_connect(ssl_.get()) == 1) return;
    const auto verdict = SSL_get_verify_result(ssl_.get());
    const bool is_distrusted = verdict != X509_V_OK;
    throw NoAnswer("cannot open a TLS connection to " + host_ + ": " +
                       (is_distrusted ? X509_verify_cert_error_string(verdict) : tls_error()),
                   !is_distrusted);
  }

  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(SSL* connection) const { SSL_free(connection); }
  };

  std::string host_;
  bool tls_;
  std::chrono::milliseconds silence_;
  core::Descriptor socket_;
  std::unique_ptr<SSL_CTX, Free> context_;  ///< Null without TLS, as is `ssl_`.
  std::unique_ptr<SSL, Free> ssl_;
  std::array<char, 64 << 10> buffer_;
  std::uint64_t received_ = 0;
  std::chrono::steady_clock::duration waited_{};  ///< For the last `passed_` bytes.
  std::uint64_t passed_ = 0;
};

namespace {

/// Sends the request. @return false if the server closed the connection, or responded, before it
/// had the whole body: the reason is in the response
bool send_request(Connection& connection, const HttpCall& call, const std::string& host,
                  const std::string& target) {
  std::string head =
      call.method + " " + target + " HTTP/1.1\r\nHost: " + host + "\r\nUser-Agent: pipe-stager\r\n";
  for (const auto& header : call.headers) head += header + "\r\n";
  if (call.method != "GET" && call.method != "HEAD")
    head += "Content-Length: " + std::to_string(call.size) + "\r\n";
  bool is_taken = connection.write(head + "\r\n");
  std::array<char, 64 << 10> piece;
  for (std::uint64_t sent = 0; is_taken && sent < call.size;) {
    const auto count = call.read(
        sent, std::span(piece).first(std::min<std::uint64_t>(piece.size(), call.size - sent)));
    if (count == 0) throw core::EnvironmentError("a file became shorter while it was sent");
    is_taken = !connection.is_answered() && connection.write({piece.data(), count});
    sent += count;
  }
  return is_taken;
}

/// Thrown to stop reading a body.
struct StopReading {};

/// Reads a response. The body is passed to the call's function, or stored in the reply; the body of
/// an error is stored up to 1 MiB.
class ReplyReader {
 public:
  ReplyReader(Connection& connection, const HttpCall& call)
      : connection_(connection), call_(call) {}

  Reply read() {
    do read_head();
    while (reply_.status < 200);
    if (call_.on_headers) call_.on_headers(reply_);
    if (call_.method == "HEAD" || reply_.status == 204 || reply_.status == 304)
      return std::move(reply_);
    try {
      read_body();
    } catch (const StopReading&) {
      reply_.headers["connection"] = "close";
    }
    return std::move(reply_);
  }

 private:
  void read_body() {
    const auto encoding = reply_.headers.find("transfer-encoding");
    const auto length = reply_.headers.find("content-length");
    if (encoding != reply_.headers.end() && core::lower(encoding->second) == "chunked") {
      read_chunks();
    } else if (length != reply_.headers.end()) {
      read_bytes(number(length->second, 10));
    } else {
      take(std::exchange(pending_, {}));
      for (auto bytes = connection_.read(); !bytes.empty(); bytes = connection_.read()) take(bytes);
    }
  }

  [[noreturn]] void refuse() const {
    throw NoAnswer("the server at " + connection_.host() + " does not answer in HTTP", false);
  }

  std::uint64_t number(std::string_view text, int base) const {
    std::uint64_t number = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), number, base).ec != std::errc())
      refuse();
    return number;
  }

  std::string_view more() {
    const auto bytes = connection_.read();
    if (bytes.empty()) throw NoAnswer("the connection to " + connection_.host() + " was cut", true);
    return bytes;
  }

  std::string read_line() {
    for (;;) {
      if (const auto end = pending_.find('\n'); end != pending_.npos) {
        auto text = pending_.substr(0, end);
        pending_.erase(0, end + 1);
        if (text.ends_with('\r')) text.pop_back();
        lines_ += end + 1;
        if (lines_ > max_head) refuse();
        return text;
      }
      if (pending_.size() > max_head) refuse();
      pending_ += more();
    }
  }

  void read_head() {
    reply_ = {};
    const auto first = read_line();
    if (!first.starts_with("HTTP/1.") || first.size() < 12) refuse();
    std::from_chars(first.data() + 9, first.data() + 12, reply_.status);
    for (auto header = read_line(); !header.empty(); header = read_line()) {
      const auto colon = std::min(header.find(':'), header.size() - 1);
      const auto value = header.find_first_not_of(' ', colon + 1);
      reply_.headers[core::lower(std::string_view(header).substr(0, colon))] =
          value == header.npos ? "" : header.substr(value);
    }
  }

  void read_chunks() {
    while (const auto size = number(read_line(), 16)) {
      read_bytes(size);
      read_line();
      lines_ = 0;
    }
    while (!read_line().empty()) {  // Trailers.
    }
  }

  void read_bytes(std::uint64_t size) {
    while (size > 0) {
      if (pending_.empty()) pending_ = more();
      const auto count = std::min<std::uint64_t>(size, pending_.size());
      take(std::string_view(pending_).substr(0, count));
      pending_.erase(0, count);
      size -= count;
    }
  }

  void take(std::string_view bytes) {
    if (bytes.empty()) return;
    if (call_.on_bytes && reply_.status < 300)
      call_.on_bytes(reply_.headers.contains("content-range"), bytes);
    else if (reply_.body.size() < (1 << 20))
      reply_.body += bytes;
    else
      throw StopReading();
  }

  Connection& connection_;
  const HttpCall& call_;
  Reply reply_;
  std::string pending_;    ///< Received bytes that have not been processed.
  std::size_t lines_ = 0;  ///< Bytes of the lines since the last piece of a body.
};

Reply exchange(Connection& connection, const HttpCall& call, const Target& target) {
  const bool is_taken = send_request(connection, call, target.host_header, target.path);
  auto reply = ReplyReader(connection, call).read();
  if (!is_taken && reply.status < 300)
    throw NoAnswer("the connection to " + connection.host() + " was cut", true);
  if (!is_taken) reply.headers["connection"] = "close";  // The server still expects the body.
  return reply;
}

}  // namespace

Http::Http(std::string authorities, std::chrono::milliseconds silence)
    : authorities_(std::move(authorities)), silence_(silence) {}
Http::~Http() = default;

/// Returns a connection to the URL's host that no call uses, for this call alone; null if there is
/// none.
std::unique_ptr<Connection> Http::take_idle(const std::string& url) {
  const auto target = target_of(url);
  const std::lock_guard lock(mutex_);
  for (auto each = idle_.rbegin(); each != idle_.rend(); ++each) {
    if (!(*each)->leads_to(target)) continue;
    auto found = std::move(*each);
    idle_.erase(std::next(each).base());
    return found;
  }
  return nullptr;
}

Reply Http::send(const HttpCall& call) {
  const auto target = target_of(call.url);
  for (;;) {
    auto connection = take_idle(call.url);
    const bool is_old = connection != nullptr;
    if (!connection) connection = std::make_unique<Connection>(target, authorities_, silence_);
    connection->begin_call();
    try {
      auto reply = exchange(*connection, call, target);
      const auto header = reply.headers.find("connection");
      const bool has_known_end = reply.headers.contains("content-length") ||
                                 reply.headers.contains("transfer-encoding") || reply.status == 204;
      if (has_known_end &&
          (header == reply.headers.end() || core::lower(header->second) != "close")) {
        const std::lock_guard lock(mutex_);
        idle_.push_back(std::move(connection));
        if (idle_.size() > max_idle) idle_.erase(idle_.begin());
      }
      return reply;
    } catch (const NoAnswer& error) {
      // The server has closed an idle connection and sent no response.
      if (!is_old || !error.is_transient() || connection->received() > 0) throw;
    }
  }
}

}  // namespace pipeline::stager

#include "serve/server.hpp"

#include <unistd.h>

#include <csignal>
#include <set>

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

#include "async/on_pool.hpp"
#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "serve/question_requests.hpp"

namespace pipeline::serve {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A page needs a handful of connections; many more are a fault or an attack.
constexpr std::size_t max_connections = 256, max_header = 16 * 1024, max_part = 256 * 1024;
/// Time limits of a connection without a request, of a request, and of writing a part.
constexpr seconds idle_time{60}, request_time{20}, write_time{30};
constexpr seconds beat_time{5};         ///< Maximum pause in a stream of events.
constexpr milliseconds min_pause{250};  ///< Between two calls of a feed.

/// Pages load from this server only, and never run the output of a step.
constexpr const char* policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src "
    "'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

Response respond_safely(Api& api, const PageRequest& request) {
  try {
    return api.respond(request);
  } catch (const core::InputError& error) {
    const auto& diagnostic = error.diagnostics().front();
    return refusal(404, diagnostic.message +
                            (diagnostic.suggestion.empty() ? "" : "\n" + diagnostic.suggestion));
  } catch (const std::exception& error) {
    return refusal(500, error.what());
  }
}

std::string next_safely(Feed& feed) {
  try {
    return feed.next();
  } catch (const std::exception& error) {
    core::log::warn(error.what());
    return {};
  }
}

Response refusal_for(Verdict verdict) {
  if (verdict == Verdict::wrong_host)
    return refusal(421, "this server answers only under its own name");
  if (verdict == Verdict::cross_site) return refusal(403, "this server answers no other site");
  return refusal(403,
                 "this page needs its token: open the whole address that `pipe serve` has printed");
}

struct Connection {
  explicit Connection(tcp::socket socket)
      : stream(std::move(socket)), timer(stream.get_executor()) {}
  beast::tcp_stream stream;
  asio::steady_timer timer;
  beast::flat_buffer buffer{max_header};
  std::optional<Clock::time_point> waits_since;  ///< Unset while the server works on a request.
  bool stops = false;

  void stop() {
    stops = true;
    timer.cancel();
    stream.close();
  }
};

/// Marks, while it exists, that the connection waits for its other end (see make_room()).
class Wait {
 public:
  explicit Wait(Connection& connection) : connection_(connection) {
    connection_.waits_since = Clock::now();
  }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;
  ~Wait() { connection_.waits_since.reset(); }

 private:
  Connection& connection_;
};

}  // namespace

class Server::Implementation {
 public:
  Implementation(const std::string& host, unsigned short port)
      : acceptor_(loop_), signals_(loop_, SIGINT, SIGTERM, SIGHUP), pool_(1) {
    boost::system::error_code error;
    const auto address = asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, error);
    if (error)
      throw core::EnvironmentError("'" + host + "' is not an address to listen on",
                                   {"write an IP address of this machine, such as 127.0.0.1"});
    listen({address, port}, error);
    if (!error) return;
    std::vector<std::string> advice;
    if (error == asio::error::address_in_use)
      advice = {
          "another `pipe serve` may be running; `--port N` takes another port, `--port 0` "
          "any that is free"};
    else if (error == asio::error::access_denied)
      advice = {"ports below 1024 are the administrator's: `--port N` takes another one"};
    throw core::EnvironmentError(
        "cannot listen on " + host + " port " + std::to_string(port) + ": " + error.message(),
        advice);
  }

  unsigned short port() const { return acceptor_.local_endpoint().port(); }

  void run(Api& api, const Guard& guard) {
    api_ = &api;
    guard_ = &guard;
    signals_.async_wait([this](boost::system::error_code error, int) {
      if (error) return;
      boost::system::error_code ignored;
      signals_.clear(ignored);  // A second signal ends the process at once.
      acceptor_.close(ignored);
      for (auto* connection : connections_) connection->stop();
    });
    asio::co_spawn(loop_, accept(), asio::detached);
    loop_.run();
    pool_.join();
  }

 private:
  void listen(const tcp::endpoint& endpoint, boost::system::error_code& error) {
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  }

  async::Task<> accept() {
    while (acceptor_.is_open()) {
      boost::system::error_code error;
      auto socket =
          co_await acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, error));
      if (error && acceptor_.is_open()) {  // For example too many open files.
        asio::steady_timer pause(loop_, min_pause);
        co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
      } else if (!error && make_room()) {
        asio::co_spawn(loop_, serve(std::move(socket)), asio::detached);
      }
    }
  }

  /// Closes the connection that has waited longest for its other end if there are too many:
  /// connections need no token, so those of others could keep the browser out. Returns false if
  /// none waits.
  bool make_room() {
    if (connections_.size() < max_connections) return true;
    Connection* oldest = nullptr;
    for (auto* each : connections_)
      if (!each->stops && each->waits_since &&
          (!oldest || *each->waits_since < *oldest->waits_since))
        oldest = each;
    if (oldest) oldest->stop();
    return oldest;
  }

  async::Task<> serve(tcp::socket socket) {
    Connection connection(std::move(socket));
    connections_.insert(&connection);
    // The server may have been stopped after it accepted the connection.
    connection.stops = !acceptor_.is_open();
    try {
      bool goes_on = true;
      while (goes_on && !connection.stops) goes_on = co_await serve_request(connection);
    } catch (const std::exception& error) {
      core::log::debug(error.what());
    }
    connections_.erase(&connection);
    boost::system::error_code ignored;
    connection.stream.socket().shutdown(tcp::socket::shutdown_send, ignored);
  }

  /// Waits for a request and responds; returns whether the connection can take another.
  async::Task<bool> serve_request(Connection& connection) {
    http::request_parser<http::empty_body> parser;
    parser.header_limit(max_header);
    boost::system::error_code error;
    connection.stream.expires_after(connection.buffer.size() > 0 ? request_time : idle_time);
    {
      const Wait wait(connection);
      co_await http::async_read_header(connection.stream, connection.buffer, parser,
                                       asio::redirect_error(asio::use_awaitable, error));
    }
    if (error) co_return false;
    const auto& head = parser.get();
    const bool is_post = head.method() == http::verb::post;
    const bool is_head = head.method() == http::verb::head;
    const bool keep = head.keep_alive() && (head.method() == http::verb::get || is_head) &&
                      parser.content_length_remaining().value_or(0) == 0 && !parser.chunked();
    auto request = request_of(head, connection);
    auto response = refusal_of(head, request);
    if (!response && is_post) response = co_await read_body(connection, parser, request->body);
    if (!response) {
      auto work = [&] { return respond_safely(*api_, *request); };
      response = co_await async::on_pool(pool_, work);
    }
    if (connection.stops) co_return false;
    if (response->feed && !is_head) {
      co_await stream_events(connection, *response);
      co_return false;
    }
    co_return co_await send(connection, *response, is_head, keep);
  }

  /// Returns the request of a head, as far as it can be read.
  std::optional<PageRequest> request_of(const http::request<http::empty_body>& head,
                                        const Connection& connection) const {
    auto request = parse_target({head.target().data(), head.target().size()});
    if (!request) return request;
    boost::system::error_code ignored;
    request->is_post = head.method() == http::verb::post;
    request->bearer = bearer_of(text_of(head, http::field::authorization));
    request->peer = connection.stream.socket().remote_endpoint(ignored).address().to_string();
    return request;
  }

  template <typename Name>
  static std::string_view text_of(const http::request<http::empty_body>& head, Name name) {
    const auto value = head[name];
    return {value.data(), value.size()};
  }

  /// Returns the refusal of a request; nothing if the Api is to respond.
  std::optional<Response> refusal_of(const http::request<http::empty_body>& head,
                                     std::optional<PageRequest>& request) const {
    const bool is_answer = request && request->is_post && is_about_a_question(*request);
    const std::string token = request ? request->value("token") : std::string();
    const auto verdict = guard_->judge({.host = text_of(head, http::field::host),
                                        .authorization = text_of(head, http::field::authorization),
                                        .fetch_site = text_of(head, "Sec-Fetch-Site"),
                                        .fetch_mode = text_of(head, "Sec-Fetch-Mode"),
                                        .token = token,
                                        .changes = is_answer});
    // The page itself has no data. A cookie could open it, but would go to all ports of this
    // machine, also to those of other users. The key of a question opens this question alone.
    const bool has_data = !request || request->path.starts_with("/api/");
    const bool has_key = request && is_about_a_question(*request) && !request->bearer.empty();
    if (verdict != Verdict::allowed && (verdict != Verdict::no_token || (has_data && !has_key)))
      return refusal_for(verdict);
    const bool is_read = head.method() == http::verb::get || head.method() == http::verb::head;
    if (!is_read && !is_answer) {
      auto refused =
          refusal(405, "this server takes GET and HEAD, and POST of an answer to a question");
      refused.headers.emplace_back("Allow", "GET, HEAD");
      return refused;
    }
    if (!request) return refusal(400, "this is not the address of a page");
    request->has_token = verdict == Verdict::allowed;
    return std::nullopt;
  }

  /// Reads the body of an answer to a question. Returns a refusal if the body is not of the content
  /// type of JSON, has no stated length, is too long, or does not arrive whole.
  async::Task<std::optional<Response>> read_body(Connection& connection,
                                                 http::request_parser<http::empty_body>& head,
                                                 std::string& body) {
    if (text_of(head.get(), http::field::content_type) != "application/json")
      co_return refusal(415, "an answer is application/json");
    if (head.chunked() || !head.content_length())
      co_return refusal(411, "an answer has a Content-Length");
    auto too_long =
        refusal(413, "an answer has at most " + std::to_string(max_answer_body) + " bytes");
    const auto length = *head.content_length();
    // A body that is not much too long is read all the same: a connection that is closed with a
    // part of the body unread loses the refusal.
    if (length > 4 * max_answer_body) co_return std::move(too_long);
    http::request_parser<http::string_body> parser(std::move(head));
    boost::system::error_code error;
    connection.stream.expires_after(request_time);
    const Wait wait(connection);
    co_await http::async_read(connection.stream, connection.buffer, parser,
                              asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return refusal(400, "the answer did not arrive whole");
    if (length > max_answer_body) co_return std::move(too_long);
    body = std::move(parser.get().body());
    co_return std::nullopt;
  }

  static http::response<http::empty_body> head_of(const Response& response, bool keep) {
    constexpr unsigned http_1_1 = 11;  // Boost.Beast's notation.
    http::response<http::empty_body> head{static_cast<http::status>(response.status), http_1_1};
    head.set(http::field::content_type, response.type);
    head.set(http::field::cache_control, "no-store");
    head.set("Content-Security-Policy", policy);
    head.set("X-Content-Type-Options", "nosniff");
    head.set("X-Frame-Options", "DENY");
    head.set("Referrer-Policy", "no-referrer");
    head.set("Cross-Origin-Resource-Policy", "same-origin");
    head.set("Cross-Origin-Opener-Policy", "same-origin");
    for (const auto& [name, value] : response.headers) head.insert(name, value);
    head.keep_alive(keep);
    return head;
  }

  async::Task<bool> write_head(Connection& connection, http::response<http::empty_body>& head) {
    http::response_serializer<http::empty_body> serializer(head);
    boost::system::error_code error;
    connection.stream.expires_after(write_time);
    const Wait wait(connection);
    co_await http::async_write_header(connection.stream, serializer,
                                      asio::redirect_error(asio::use_awaitable, error));
    co_return !error;
  }

  async::Task<bool> write(Connection& connection, std::string_view text) {
    boost::system::error_code error;
    const auto buffer = asio::buffer(text.data(), text.size());
    connection.stream.expires_after(write_time);
    const Wait wait(connection);
    co_await asio::async_write(connection.stream, buffer,
                               asio::redirect_error(asio::use_awaitable, error));
    co_return !error;
  }

  async::Task<bool> send(Connection& connection, Response& response, bool is_head, bool keep) {
    auto head = head_of(response, keep);
    head.content_length(response.file ? response.file->size : response.body.size());
    bool is_sent = co_await write_head(connection, head);
    if (is_sent && !is_head) {
      if (response.file)
        is_sent = co_await send_file(connection, *response.file);
      else
        is_sent = co_await send_text(connection, response.body);
    }
    if (!is_sent) co_return false;
    co_return keep;
  }

  /// Sends the text in parts, because the time limit applies to each part.
  async::Task<bool> send_text(Connection& connection, std::string_view text) {
    bool is_sent = true;
    while (is_sent && !text.empty()) {
      const auto part = text.substr(0, max_part);
      text.remove_prefix(part.size());
      is_sent = co_await write(connection, part);
    }
    co_return is_sent;
  }

  async::Task<bool> send_file(Connection& connection, FileBody& body) {
    std::string part;
    while (body.size > 0 && !connection.stops) {
      part.resize(std::min<std::uint64_t>(max_part, body.size));
      const auto count =
          ::pread(body.file.get(), part.data(), part.size(), static_cast<off_t>(body.from));
      if (count <= 0) co_return false;
      part.resize(static_cast<std::size_t>(count));
      body.from += part.size();
      body.size -= part.size();
      const bool is_sent = co_await write(connection, part);
      if (!is_sent) co_return false;
    }
    co_return body.size == 0;
  }

  /// Sends the feed's events until the browser closes the connection. The pause between two calls
  /// of the feed grows with the time that a call takes.
  async::Task<> stream_events(Connection& connection, Response& response) {
    constexpr bool keep = false;
    auto head = head_of(response, keep);
    bool is_sent = co_await write_head(connection, head);
    auto& feed = *response.feed;
    auto work = [&] { return next_safely(feed); };
    auto beat = Clock::now();
    while (is_sent && !connection.stops) {
      const auto began = Clock::now();
      auto text = co_await async::on_pool(pool_, work);
      if (connection.stops) co_return;
      const auto now = Clock::now();
      // Sending a comment detects whether the browser is still connected.
      if (text.empty() && now - beat >= beat_time) text = ":\n\n";
      if (!text.empty()) {
        beat = now;
        is_sent = co_await write(connection, text);
      }
      constexpr int pause_factor = 10;
      connection.timer.expires_after(
          std::max<Clock::duration>(min_pause, (now - began) * pause_factor));
      boost::system::error_code ignored;
      co_await connection.timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
  }

  asio::io_context loop_{1};
  tcp::acceptor acceptor_;
  asio::signal_set signals_;
  asio::thread_pool pool_;  ///< The only thread that reads the store.
  std::set<Connection*> connections_;
  Api* api_ = nullptr;
  const Guard* guard_ = nullptr;
};

Server::Server(const std::string& host, unsigned short port)
    : self_(std::make_unique<Implementation>(host, port)) {}
Server::~Server() = default;
unsigned short Server::port() const { return self_->port(); }
void Server::run(Api& api, const Guard& guard) { self_->run(api, guard); }

}  // namespace pipeline::serve

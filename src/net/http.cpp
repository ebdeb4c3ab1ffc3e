#include "net/http.hpp"

#include <algorithm>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <utility>

#include "async/gate.hpp"
#include "async/sleep.hpp"
#include "core/identifier.hpp"
#include "core/text.hpp"
#include "net/multi.hpp"
#include "net/transport.hpp"

namespace pipeline::net {

std::string Response::header(const std::string& name) const {
  auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

struct HttpClient::Implementation {
  explicit Implementation(asio::io_context& event_loop) : loop(event_loop) {}
  Multi& multi() {
    if (!multi_) multi_ = std::make_unique<Multi>(loop);
    return *multi_;
  }
  asio::io_context& loop;

 private:
  std::unique_ptr<Multi> multi_;  ///< Created on first use, because creating it loads libcurl.
};

namespace {

/// Limits of collected bodies; larger bodies need a callback.
constexpr std::size_t max_answer = std::size_t{64} << 20, max_error_answer = std::size_t{1} << 20;
constexpr std::size_t max_head = std::size_t{1} << 20;
constexpr long min_bytes_per_second = 1024;  // Fewer bytes count as silence (Request::silence).

/// A request and its response.
class Exchange {
 public:
  Exchange(asio::io_context& loop, Request& request, std::function<void(std::string_view)>& on_body,
           std::function<void(const Response&)>& on_headers)
      : request_(request), on_body_(on_body), on_headers_(on_headers), done_(loop.get_executor()) {}
  ~Exchange() {
    if (multi_) multi_->remove(easy_);
    if (easy_) curl::easy_cleanup(easy_);
    curl::slist_free_all(headers_);
    curl::slist_free_all(addresses_);
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  void begin(Multi& multi);
  /// Ends the exchange as if curl had ended it with this code, which is thrown to the waiter.
  void abort(CURLcode code) {
    if (multi_) std::exchange(multi_, nullptr)->remove(easy_);
    finish(code);
  }
  async::Task<> wait() { return done_.wait(); }
  bool done() const { return done_.is_open(); }
  /// Returns true if the backlog of a unix socket was full. connect() then returns EAGAIN, which
  /// curl takes for progress; curl fails later without a reason or when it sends. No byte has
  /// reached the other end, so a second attempt is safe.
  bool crowded() const {
    if (request_.unix_socket.empty()) return false;
    return (code_ == CURLE_COULDNT_CONNECT && (os_error_ == 0 || os_error_ == EAGAIN)) ||
           (code_ == CURLE_SEND_ERROR && os_error_ == ENOTCONN);
  }
  /// Returns the response; throws the exception of a callback, or TransportError.
  Response result();

 private:
  template <class Value>
  void set(CURLoption option, Value value) {
    set_option(easy_, request_, option, value);
  }
  void set_body();
  void add_header(const std::string& header);
  void finish(CURLcode code) {
    code_ = code;
    if (easy_) curl::easy_getinfo(easy_, CURLINFO_OS_ERRNO, &os_error_);
    done_.open();
  }
  /// Runs a callback of the caller; returns false after an exception, which ends the exchange and
  /// is thrown to the waiter.
  template <class Work>
  bool guarded(Work work) noexcept {
    try {
      work();
      return true;
    } catch (...) {
      error_ = std::current_exception();
      return false;
    }
  }
  void take_header(std::string_view line);
  void collect(std::string_view bytes);
  std::string failure() const;

  static curl_socket_t on_open(void* self, curlsocktype, curl_sockaddr*);
  static std::size_t on_header(char* bytes, std::size_t size, std::size_t count, void* self);
  static std::size_t on_write(char* bytes, std::size_t size, std::size_t count, void* self);
  static std::size_t on_read(char* bytes, std::size_t size, std::size_t count, void* self);
  static int on_seek(void* self, curl_off_t offset, int origin);

  Request& request_;
  std::function<void(std::string_view)>& on_body_;
  std::function<void(const Response&)>& on_headers_;
  async::Gate done_;
  Multi* multi_ = nullptr;  ///< Set while the exchange is in progress there.
  CURL* easy_ = nullptr;
  curl_slist* headers_ = nullptr;
  curl_slist* addresses_ = nullptr;
  char words_[CURL_ERROR_SIZE] = {};  ///< curl's own message for an error.
  Response response_;
  std::exception_ptr error_;
  CURLcode code_ = CURLE_OK;
  long os_error_ = 0;
  bool headers_ended_ = false;
  std::size_t head_bytes_ = 0;  ///< Bytes of headers, of interim responses and of trailers.
  bool has_enough_ = false;     ///< The rest of the body is not read.
};

void Exchange::begin(Multi& multi) {
  easy_ = curl::easy_init();
  if (!easy_) throw TransportError(CURLE_OUT_OF_MEMORY, "libcurl cannot create a handle");
  void* self = this;
  std::size_t (*header)(char*, std::size_t, std::size_t, void*) = &Exchange::on_header;
  std::size_t (*write)(char*, std::size_t, std::size_t, void*) = &Exchange::on_write;
  set(CURLOPT_ERRORBUFFER, words_);
  set(CURLOPT_PATH_AS_IS, 1L);
  set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);  // A proxy's answer is not the server's.
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(request_.timeout.count()));
  set(CURLOPT_LOW_SPEED_LIMIT, min_bytes_per_second);
  set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(request_.silence.count()));
  set(CURLOPT_HEADERFUNCTION, header);
  set(CURLOPT_HEADERDATA, self);
  set(CURLOPT_WRITEFUNCTION, write);
  set(CURLOPT_WRITEDATA, self);
  if (!request_.unix_socket.empty()) {
    set(CURLOPT_UNIX_SOCKET_PATH, request_.unix_socket.c_str());
    set(CURLOPT_PROXY, "");  // The environment's proxy is for the network only.
  }
  if (request_.make_socket) {
    curl_socket_t (*open)(void*, curlsocktype, curl_sockaddr*) = &Exchange::on_open;
    set(CURLOPT_OPENSOCKETFUNCTION, open);
    set(CURLOPT_OPENSOCKETDATA, self);
  }
  addresses_ = set_transport(easy_, request_);
  set_body();
  add_header("Expect:");  // Prevents curl from waiting a second for `100 Continue`.
  for (const auto& line : request_.headers) add_header(line);
  set(CURLOPT_HTTPHEADER, headers_);
  multi_ = &multi;
  try {
    multi.add(easy_, [this](CURLcode code) {
      multi_ = nullptr;
      finish(code);
    });
  } catch (...) {
    multi_ = nullptr;
    throw;
  }
}

void Exchange::set_body() {
  if (request_.body_source) {
    std::size_t (*read)(char*, std::size_t, std::size_t, void*) = &Exchange::on_read;
    int (*seek)(void*, curl_off_t, int) = &Exchange::on_seek;
    set(CURLOPT_POST, 1L);
    set(CURLOPT_READFUNCTION, read);
    set(CURLOPT_READDATA, static_cast<void*>(this));
    set(CURLOPT_SEEKFUNCTION, seek);
    set(CURLOPT_UPLOAD_BUFFERSIZE, 256L * 1024);
    constexpr std::string_view length = "Content-Length: ";
    const auto given = std::ranges::find_if(
        request_.headers, [&](const std::string& each) { return each.starts_with(length); });
    if (given == request_.headers.end())
      add_header("Transfer-Encoding: chunked");
    else
      set(CURLOPT_POSTFIELDSIZE_LARGE,
          static_cast<curl_off_t>(std::atoll(given->c_str() + length.size())));
  } else if (!request_.body.empty() || request_.method == "POST") {
    set(CURLOPT_POSTFIELDS, request_.body.c_str());
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
  } else if (request_.method == "HEAD") {
    set(CURLOPT_NOBODY, 1L);
  }
  if (request_.method != "GET" && request_.method != "HEAD")
    set(CURLOPT_CUSTOMREQUEST, request_.method.c_str());
}

void Exchange::add_header(const std::string& header) {
  if (core::has_control_characters(header))
    throw core::EnvironmentError("a header of " + request_.method + " " + request_.url +
                                 " holds control characters");
  auto* longer = curl::slist_append(headers_, header.c_str());
  if (!longer) throw TransportError(CURLE_OUT_OF_MEMORY, "libcurl cannot add a header");
  headers_ = longer;
}

void Exchange::take_header(std::string_view line) {
  head_bytes_ += line.size();
  if (head_bytes_ > max_head)
    throw core::EnvironmentError(request_.method + " " + request_.url +
                                 ": the head of the answer is larger than " +
                                 std::to_string(max_head >> 10) + " KiB");
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  if (line.starts_with("HTTP/")) {  // Also after a `100 Continue`: the later response counts.
    response_.headers.clear();
    headers_ended_ = false;
    const auto space = line.find(' ');
    response_.status =
        space == line.npos ? 0 : std::atol(std::string(line.substr(space + 1, 3)).c_str());
  } else if (headers_ended_) {
    return;  // Trailers are not needed.
  } else if (line.empty()) {
    headers_ended_ = true;
    if (response_.status >= 200 && on_headers_) on_headers_(response_);
  } else if (const auto colon = line.find(':'); colon != line.npos) {
    response_.headers.emplace(core::lower(line.substr(0, colon)),
                              core::trimmed(line.substr(colon + 1), " \t"));
  }
}

/// Collects the bytes of a body; of an error's or a redirection's body, only the beginning.
void Exchange::collect(std::string_view bytes) {
  const bool is_error = response_.status >= 300;
  const auto max_size = is_error ? max_error_answer : max_answer;
  if (!is_error && response_.body.size() + bytes.size() > max_size)
    throw core::EnvironmentError(request_.method + " " + request_.url +
                                 ": the answer is larger than " + std::to_string(max_size >> 20) +
                                 " MiB");
  core::append_bounded(response_.body, bytes, max_size);
  has_enough_ = is_error && response_.body.size() == max_size;
}

curl_socket_t Exchange::on_open(void* self, curlsocktype, curl_sockaddr*) {
  auto& exchange = *static_cast<Exchange*>(self);
  curl_socket_t socket = CURL_SOCKET_BAD;
  exchange.guarded([&] { socket = exchange.request_.make_socket(); });
  return socket;
}

std::size_t Exchange::on_header(char* bytes, std::size_t size, std::size_t count, void* self) {
  auto& exchange = *static_cast<Exchange*>(self);
  const std::string_view line(bytes, size * count);
  return exchange.guarded([&] { exchange.take_header(line); }) ? line.size() : CURL_WRITEFUNC_ERROR;
}

std::size_t Exchange::on_write(char* bytes, std::size_t size, std::size_t count, void* self) {
  auto& exchange = *static_cast<Exchange*>(self);
  const std::string_view piece(bytes, size * count);
  const bool ok = exchange.guarded([&] {
    if (exchange.on_body_ && exchange.response_.status < 300)
      exchange.on_body_(piece);
    else
      exchange.collect(piece);
  });
  return ok && !exchange.has_enough_ ? piece.size() : CURL_WRITEFUNC_ERROR;
}

std::size_t Exchange::on_read(char* bytes, std::size_t size, std::size_t count, void* self) {
  auto& exchange = *static_cast<Exchange*>(self);
  std::size_t written = 0;
  return exchange.guarded(
             [&] { written = exchange.request_.body_source(std::span<char>(bytes, size * count)); })
             ? written
             : CURL_READFUNC_ABORT;
}

/// A source cannot be read twice, so a request with a source is not repeated on another connection.
int Exchange::on_seek(void*, curl_off_t, int) { return CURL_SEEKFUNC_FAIL; }

std::string Exchange::failure() const {
  const std::string where = request_.unix_socket.empty() ? request_.url : request_.unix_socket;
  if (code_ == CURLE_COULDNT_CONNECT && os_error_)
    return "cannot connect to " + where + ": " + std::strerror(static_cast<int>(os_error_));
  if (code_ == CURLE_ABORTED_BY_CALLBACK)
    return request_.method + " " + request_.url + " was cancelled";
  std::string text = words_[0] ? words_ : curl::easy_strerror(code_);
  return request_.method + " " + request_.url +
         (request_.unix_socket.empty() ? "" : " on " + where) + ": " + text;
}

Response Exchange::result() {
  if (error_) std::rethrow_exception(error_);
  if (has_enough_) return std::move(response_);
  if (code_ == CURLE_OK && !headers_ended_) {  // curl reports this as a success.
    code_ = CURLE_PARTIAL_FILE;
    std::strcpy(words_, "the connection was cut within the headers");
  }
  if (code_ != CURLE_OK) throw TransportError(code_, failure());
  return std::move(response_);
}

}  // namespace

HttpClient::HttpClient(asio::io_context& loop) : self_(std::make_shared<Implementation>(loop)) {}
HttpClient::~HttpClient() = default;

async::Task<Response> HttpClient::send(Request request,
                                       std::function<void(std::string_view)> on_body,
                                       core::CancelSource* cancel,
                                       std::function<void(const Response&)> on_headers) {
  auto& loop = self_->loop;
  const std::weak_ptr<Implementation> client = self_;
  const auto give_up = std::chrono::steady_clock::now() + request.connect_timeout;
  if (self_->multi().busy()) co_await asio::post(loop, asio::use_awaitable);
  while (true) {
    // Shared with the handler of a cancellation that may run after the exchange has ended.
    auto exchange = std::make_shared<Exchange>(loop, request, on_body, on_headers);
    std::optional<core::CancelSource::Listener> listener;
    if (cancel) {
      listener.emplace(*cancel, [&loop, weak = std::weak_ptr<Exchange>(exchange)](core::StopLevel) {
        asio::post(loop, [weak] {
          if (auto still = weak.lock(); still && !still->done())
            still->abort(CURLE_ABORTED_BY_CALLBACK);
        });
      });
    }
    if (const auto self = client.lock())
      exchange->begin(self->multi());
    else
      exchange->abort(CURLE_ABORTED_BY_CALLBACK);
    co_await exchange->wait();
    if (!exchange->crowded() || std::chrono::steady_clock::now() >= give_up)
      co_return exchange->result();
    co_await async::sleep(std::chrono::milliseconds(2));
  }
}

}  // namespace pipeline::net

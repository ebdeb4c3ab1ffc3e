#include "fetch/sources.hpp"

#include <algorithm>
#include <array>

#include <boost/asio/ip/tcp.hpp>

#include "async/deadline.hpp"
#include "async/sleep.hpp"
#include "core/diagnostic.hpp"
#include "core/digest.hpp"
#include "core/text.hpp"
#include "core/user_environment.hpp"
#include "fetch/number.hpp"
#include "net/local_address.hpp"

namespace pipeline::fetch {

namespace s3 = blobs::s3;

namespace {

constexpr unsigned max_redirects = 5;
constexpr std::size_t max_objects = 1'000'000;
/// Time after which a silent connection is given up.
constexpr std::chrono::seconds max_silence{60};
/// Bytes. A connection on which fewer arrive in the time of max_silence counts as silent.
constexpr std::size_t min_received = 60 << 10;
constexpr async::RetryPolicy list_retries{.first_pause = std::chrono::milliseconds(200),
                                          .max_pause = std::chrono::milliseconds(5'000),
                                          .max_tries = 6};

bool is_redirection(long status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/// Returns what the headers of a response say about the content.
ContentState state_in(const net::Response& response) {
  ContentState state{.size = number_in(response.header("content-length")),
                     .etag = response.header("etag"),
                     .modified = response.header("last-modified"),
                     .version = response.header("x-amz-version-id"),
                     .objects = {}};
  if (const auto range = range_of(response)) state.size = range->total;
  if (state.version == "null") state.version.clear();  // The bucket once had versions.
  return state;
}

}  // namespace

bool is_temporary(long status) { return status == 408 || status == 429 || status >= 500; }

bool is_permanent(const net::TransportError& error) { return s3::is_permanent(error); }

std::optional<ContentRange> range_of(const net::Response& response) {
  return range_in(response.header("content-range"));
}

Sources::Sources(asio::io_context& loop, const settings::RemoteStoreSettings& store)
    : loop_(loop), settings_(s3::bucket_settings(store)), client_(loop) {
  settings_.prefix.clear();
}
Sources::~Sources() = default;

s3::Bucket& Sources::bucket(const std::string& name) {
  auto& found = buckets_[name];
  if (found) return *found;
  auto settings = settings_;
  settings.bucket = name;
  found = std::make_unique<s3::Bucket>(loop_, std::move(settings), list_retries);
  return *found;
}

/// Returns the request to send. @param url for HTTP: the address itself, or a redirection's target
async::Task<net::Request> Sources::request(const DataAddress& from, const std::string& url,
                                           const Reading& reading) {
  if (from.is_s3()) {
    s3::Query query;
    if (!from.version.empty()) query["versionId"] = from.version;
    co_return co_await bucket(from.bucket)
        .request(reading.method, from.key, std::move(query), reading.headers);
  }
  net::Request request;
  request.method = reading.method;
  request.url = url;
  for (const auto& [name, value] : reading.headers) request.headers.push_back(name + ": " + value);
  request.headers.emplace_back("User-Agent: pipe");
  co_return request;
}

/// Returns true if the user's environment names a proxy, which then resolves names.
static bool has_proxy() {
  return std::ranges::any_of(
      std::array{"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"},
      [](const char* name) { return !core::variable(name).empty(); });
}

/// Resolves the host of a redirection's target once. Returns the address to connect to, so that a
/// second look-up cannot give another one; empty for an unknown name. Throws EnvironmentError for a
/// local address.
static async::Task<std::string> public_address(const DataAddress& from, const std::string& url) {
  const auto [host, port] = host_and_port(url);
  asio::ip::tcp::resolver resolver(co_await asio::this_coro::executor);
  boost::system::error_code failed;
  const auto found = co_await resolver.async_resolve(
      host, port, asio::redirect_error(asio::use_awaitable, failed));
  std::string chosen;
  for (const auto& entry : found) {
    const auto address = entry.endpoint().address();
    if (net::is_local_address(*entry.endpoint().data()))
      throw core::EnvironmentError("cannot fetch " + without_query(from.url) +
                                   ": it is redirected to " + host + ", which is " +
                                   address.to_string() +
                                   ", an address of this machine or of its network's services");
    if (chosen.empty() || address.is_v4())
      chosen =
          (address.is_v6() ? "[" + address.to_string() + "]" : address.to_string()) + ":" + port;
  }
  co_return chosen;  // Empty for an unknown name, which libcurl reports.
}

async::Task<net::Response> Sources::read(const DataAddress& from, Reading& reading,
                                         core::CancelSource& stop) {
  auto url = from.url;
  for (unsigned redirects = 0; redirects <= max_redirects; ++redirects) {
    auto to_send = co_await request(from, url, reading);
    // Only an address that the user has written may lead to this machine, not a redirection.
    const bool is_elsewhere = !from.is_s3() && !is_local(from.url) && !has_same_host(url, from.url);
    if (is_elsewhere && !has_proxy()) to_send.address = co_await public_address(from, url);
    async::Deadline silence(co_await asio::this_coro::executor, stop, max_silence,
                            core::StopLevel::immediate);
    bool is_content = false;
    const std::function<void(const net::Response&)> on_headers = [&](const net::Response& head) {
      silence.restart(max_silence);
      is_content = head.status == 200 || head.status == 206;
      if (reading.on_headers && (from.is_s3() || !is_redirection(head.status)))
        reading.on_headers(head);
    };
    std::size_t received = 0;
    const std::function<void(std::string_view)> on_body = [&](std::string_view bytes) {
      received += bytes.size();
      if (received >= min_received) {
        silence.restart(max_silence);
        received = 0;
      }
      if (is_content && reading.on_body) reading.on_body(bytes);
    };
    const auto sent = to_send.url;
    net::Response response;
    try {
      response = co_await client_.send(std::move(to_send), on_body, &silence.source(), on_headers);
    } catch (const net::TransportError& error) {
      // Messages of curl and of HttpClient name the address, whose query may be a signature.
      throw net::TransportError(error.curl_code(),
                                core::replaced(error.what(), sent, without_query(sent)));
    }
    if (from.is_s3() || !is_redirection(response.status)) co_return response;
    const auto location = response.header("location");
    url = redirected(url, location);
    if (url.empty())
      throw core::EnvironmentError(
          "cannot fetch " + without_query(from.url) + ": it is redirected to " +
          core::printable(without_query(location).substr(0, 300)) + ", which is not followed");
  }
  throw core::EnvironmentError("cannot fetch " + without_query(from.url) +
                               ": it is redirected too often");
}

async::Task<std::string> Sources::signed_url(const DataAddress& from) {
  if (!from.is_s3()) co_return from.url;
  s3::Query query;
  if (!from.version.empty()) query["versionId"] = from.version;
  co_return co_await bucket(from.bucket).presigned_request("GET", from.key, std::move(query));
}

core::EnvironmentError Sources::refused(const DataAddress& from, const net::Response& response) {
  if (response.status == 404 && from.is_s3())
    return core::EnvironmentError(
        "cannot fetch " + from.url + ": the bucket has no such object" +
            (from.version.empty() ? "" : " of version " + from.version),
        {"the address of a folder, with all objects below it, ends with `/`"});
  if (from.is_s3()) return bucket(from.bucket).refused("read " + from.key + " from", response);
  return core::EnvironmentError(
      "cannot fetch " + without_query(from.url) + ": the server answered " +
          std::to_string(response.status),
      {response.status == 401 || response.status == 403
           ? "the server requires a login; use a URL that needs none, such as a signed one"
           : "look at the URL with `curl -I`"});
}

/// Returns the state of a folder in a bucket.
async::Task<ContentState> Sources::list(const DataAddress& from, core::CancelSource& stop) {
  ContentState state;
  auto objects = co_await bucket(from.bucket).objects(from.key, max_objects, &stop);
  for (auto& object : objects) {
    object.key.erase(0, from.key.size());
    if (object.key.empty() || object.key.ends_with('/')) continue;  // The key marks a folder.
    if (!is_safe_path(object.key))
      throw core::EnvironmentError("the key of an object below " + from.url +
                                   " is not the path of a file: " + core::printable(object.key));
    state.objects.push_back(std::move(object));
  }
  if (state.objects.empty())
    throw core::EnvironmentError("there is no object below " + from.url,
                                 {"the address of one object does not end with `/`"});
  std::ranges::sort(state.objects, {}, &Object::key);
  core::Hasher hasher;
  state.size = 0;
  for (const auto& object : state.objects) {
    *state.size += object.size;
    hasher.field(object.key).field(std::to_string(object.size)).field(object.etag);
  }
  state.etag = hasher.finish().hex();
  co_return state;
}

/// Asks for the state once. Returns nothing if the server may answer later.
/// @param busy receives the response of such a server
async::Task<std::optional<ContentState>> Sources::ask(const DataAddress& from,
                                                      core::CancelSource& stop,
                                                      std::optional<net::Response>& busy) {
  Reading head{.method = "HEAD", .headers = {}};
  auto response = co_await read(from, head, stop);
  if (!from.is_s3() &&
      (response.status == 403 || response.status == 405 || response.status == 501)) {
    // Signed URLs permit only GET, and some servers do not support HEAD. The body is not read.
    core::CancelSource enough;
    const core::CancelSource::Listener outer(stop,
                                             [&](core::StopLevel level) { enough.stop(level); });
    std::optional<net::Response> first;
    Reading get{.method = "GET", .headers = {{"range", "bytes=0-0"}}};
    get.on_headers = [&](const net::Response& answer) { first = answer; };
    get.on_body = [&](std::string_view) { enough.stop(core::StopLevel::immediate); };
    try {
      response = co_await read(from, get, enough);
    } catch (const net::TransportError&) {
      if (!first || stop.level() != core::StopLevel::none) throw;
      response = *first;
    }
  }
  if (response.status == 200 || response.status == 206) co_return state_in(response);
  if (!is_temporary(response.status)) throw refused(from, response);
  busy = std::move(response);
  co_return std::nullopt;
}

async::Task<ContentState> Sources::state(const DataAddress& from, core::CancelSource& stop,
                                         async::RetryPolicy retries) {
  if (from.is_folder()) co_return co_await list(from, stop);
  async::Backoff backoff(retries);
  while (true) {
    std::optional<net::Response> busy;
    std::string problem;
    try {
      const auto found = co_await ask(from, stop, busy);
      if (found) co_return *found;
      problem = "the server answered " + std::to_string(busy->status);
    } catch (const net::TransportError& error) {
      problem = error.what();
      if (is_permanent(error)) backoff = async::Backoff({.max_tries = 1});
    }
    if (stop.level() != core::StopLevel::none || backoff.exhausted())
      throw Unreachable("cannot ask for " + without_query(from.url) + ": " + problem);
    const auto pause = backoff.next(busy ? net::wanted_pause(*busy) : std::nullopt);
    co_await async::sleep(pause, &stop);
  }
}

}  // namespace pipeline::fetch

#include "engine/download.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "async/deadline.hpp"
#include "async/retry_policy.hpp"
#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "engine/data_input.hpp"

namespace pipeline::engine {
namespace {

namespace fs = std::filesystem;

constexpr unsigned most_redirects = 5;
/// A connection that gives nothing for so long is given up, and the download continued on another.
constexpr std::chrono::seconds longest_silence{60};

asio::io_context& loop_of(const asio::any_io_executor& executor) {
  return static_cast<asio::io_context&>(asio::query(executor, asio::execution::context));
}

/// The incomplete content, which a later download continues. Only one process writes to it.
class PartFile {
 public:
  explicit PartFile(const fs::path& path) : path_(path) {
    file_ = core::Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!file_) throw core::system_error("cannot write " + path.string(), errno);
  }
  bool try_lock() const { return ::flock(file_.get(), LOCK_EX | LOCK_NB) == 0; }
  std::uint64_t size() const {
    const auto end = ::lseek(file_.get(), 0, SEEK_END);
    return end < 0 ? 0 : static_cast<std::uint64_t>(end);
  }
  void append(std::string_view bytes) { core::write_fully(file_.get(), bytes, path_); }
  void clear() {
    if (::ftruncate(file_.get(), 0) != 0 || ::lseek(file_.get(), 0, SEEK_SET) != 0)
      throw core::system_error("cannot write " + path_.string(), errno);
  }

 private:
  fs::path path_;
  core::Descriptor file_;
};

/// Stops an exchange that gives nothing for a while.
class SilenceGuard {
 public:
  SilenceGuard(const asio::any_io_executor& executor, core::CancelSource& outer)
      : timer_(executor),
        from_outer_(outer, [this](core::StopLevel level) { source_.stop(level); }) {
    heard();
  }
  SilenceGuard(const SilenceGuard&) = delete;
  SilenceGuard& operator=(const SilenceGuard&) = delete;
  core::CancelSource& source() { return source_; }
  void heard() {
    timer_.expires_after(longest_silence);
    timer_.async_wait(
        [this, alive = std::weak_ptr<int>(alive_)](boost::system::error_code stopped) {
          if (!stopped && !alive.expired()) source_.stop(core::StopLevel::immediate);
        });
  }

 private:
  core::CancelSource source_;
  // Shared with the timer's handler, which may run after this object is destroyed.
  std::shared_ptr<int> alive_ = std::make_shared<int>();
  asio::steady_timer timer_;
  core::CancelSource::Listener from_outer_;
};

/// Returns the address that a redirection leads to; empty if it leads to none that is understood.
std::string redirected(const std::string& url, const std::string& location) {
  if (location.starts_with("https://")) return location;
  if (location.starts_with("http://")) return url.starts_with("https://") ? "" : location;
  const auto host = url.find("://");
  if (!location.starts_with('/') || host == std::string::npos) return {};
  if (location.starts_with("//")) return url.substr(0, host + 1) + location;
  return url.substr(0, url.find('/', host + 3)) + location;
}

bool is_redirection(long status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

bool is_temporary(long status) { return status == 408 || status == 429 || status >= 500; }

}  // namespace

Downloads::Downloads(const Services& services, EventSink& events, core::CancelSource& stop)
    : artifacts_(services.artifacts),
      folder_(services.runs.folder() / "downloads"),
      events_(events),
      stop_(stop) {}
Downloads::~Downloads() = default;

async::Task<core::Digest> Downloads::fetch(DataSpec data) {
  const auto digest = core::Digest::from_hex(data.sha256);
  if (artifacts_.looks_whole(digest)) co_return digest;
  const auto executor = co_await asio::this_coro::executor;
  if (!client_) client_ = std::make_unique<net::HttpClient>(loop_of(executor));
  const std::function<async::Task<core::Digest>()> work =
      [this, &data, &digest]() -> async::Task<core::Digest> { return download(data, digest); };
  co_return co_await flights(executor).get(data.sha256, work, &stop_);
}

async::SingleFlight<core::Digest>& Downloads::flights(const asio::any_io_executor& executor) {
  if (!flights_) flights_ = std::make_unique<async::SingleFlight<core::Digest>>(loop_of(executor));
  return *flights_;
}

async::Task<> Downloads::fetch_named(const DataSpec& data, const store::PublishedVersion& version,
                                     RemoteCache* cache, asio::thread_pool& pool) {
  const auto digest = version.output.digest;
  if (artifacts_.looks_whole(digest)) co_return;
  if (!cache)
    throw core::EnvironmentError("the content of " + name_of(data) + ", version " +
                                     std::to_string(version.version) +
                                     ", is missing or damaged here",
                                 {"`pipe verify` looks for more that is damaged"});
  const auto executor = co_await asio::this_coro::executor;
  const std::function<async::Task<core::Digest>()> work = [&]() -> async::Task<core::Digest> {
    core::make_folders(folder_);
    const core::TemporaryFolder folder(folder_);
    const RemoteOutput output{version.output, version.is_executable};
    co_await bring(*cache, output, artifacts_, folder.path() / version.output.file_name, pool,
                   stop_);
    co_return digest;
  };
  co_await flights(executor).get(digest.hex(), work, &stop_);
}

async::Task<core::Digest> Downloads::download(const DataSpec& data, const core::Digest& digest) {
  core::make_folders(folder_);
  const auto path = folder_ / data.sha256;
  PartFile lock(path);
  while (!lock.try_lock()) {  // Another run fetches it.
    co_await async::pause_for(std::chrono::milliseconds(200), &stop_);
    if (stop_.level() != core::StopLevel::none)
      throw core::EnvironmentError("the download of " + name_of(data) + " was stopped");
  }
  if (artifacts_.looks_whole(digest)) co_return digest;
  events_.emit(event::Notice{"", "fetching " + name_of(data)});
  async::Backoff backoff({.most_tries = 6});
  for (std::uint64_t before = 0;;) {
    std::string problem;
    const bool is_complete = co_await receive(data, path, problem);
    if (is_complete) break;
    if (stop_.level() != core::StopLevel::none)
      throw core::EnvironmentError("the download of " + name_of(data) + " was stopped");
    if (lock.size() > before) backoff.reset();  // It makes progress.
    before = lock.size();
    if (backoff.exhausted())
      throw core::EnvironmentError("cannot fetch " + name_of(data) + ": " + problem);
    co_await async::pause_for(backoff.next(), &stop_);
  }
  const auto found = core::sha256_file(path);
  if (found != digest) {
    fs::remove(path);
    throw core::EnvironmentError("what " + name_of(data) +
                                     " gives is not what the pipeline says: its SHA-256 is " +
                                     found.hex() + ", not " + data.sha256,
                                 {"if the change is wanted, write the new `sha256`"});
  }
  artifacts_.take(path);
  co_return digest;
}

/// Receives what is missing. @param problem why it is not complete
async::Task<bool> Downloads::receive(const DataSpec& data, const fs::path& path,
                                     std::string& problem) {
  PartFile part(path);
  std::string url = data.url;
  for (unsigned redirects = 0; redirects <= most_redirects; ++redirects) {
    const auto have = part.size();
    net::Request request;
    request.url = url;
    if (have) request.headers.push_back("Range: bytes=" + std::to_string(have) + "-");
    SilenceGuard guard(co_await asio::this_coro::executor, stop_);
    bool is_content = false;
    const std::function<void(const net::Response&)> on_headers = [&](const net::Response& head) {
      guard.heard();
      const auto continues = "bytes " + std::to_string(have) + "-";
      const bool is_whole = head.status == 200;
      if (is_whole) part.clear();
      is_content =
          is_whole || (head.status == 206 && head.header("content-range").starts_with(continues));
    };
    const std::function<void(std::string_view)> on_body = [&](std::string_view bytes) {
      guard.heard();
      if (is_content) part.append(bytes);
    };
    net::Response response;
    try {
      response = co_await client_->send(std::move(request), on_body, &guard.source(), on_headers);
    } catch (const net::TransportError& error) {
      problem = error.what();
      co_return false;
    }
    if (is_content) co_return true;
    if (response.status == 206 || response.status == 416) {
      // Another range, or what is here is complete or longer.
      if (core::sha256_file(path).hex() == data.sha256) co_return true;
      part.clear();
      continue;
    }
    if (is_redirection(response.status)) {
      url = redirected(url, response.header("location"));
      if (url.empty())
        throw core::EnvironmentError("cannot fetch " + name_of(data) + ": it is redirected to " +
                                     core::printable(response.header("location")));
      continue;
    }
    problem = "the server answered " + std::to_string(response.status);
    if (is_temporary(response.status)) co_return false;
    throw core::EnvironmentError(
        "cannot fetch " + name_of(data) + ": " + problem,
        {response.status == 401 || response.status == 403
             ? "the server wants a login; use a URL that needs none, such as a signed one"
             : "look at the URL with `curl -I`"});
  }
  throw core::EnvironmentError("cannot fetch " + name_of(data) + ": it is redirected too often");
}

}  // namespace pipeline::engine

#include "kubernetes_api/watch.hpp"

#include <random>
#include <utility>

#include "async/deadline.hpp"
#include "async/sleep.hpp"
#include "core/log.hpp"
#include "kubernetes_api/json.hpp"
#include "kubernetes_api/pages.hpp"
#include "net/silence.hpp"
#include "net/url.hpp"

namespace pipeline::kubernetes_api {
namespace {

constexpr int page_size = 500;
// Seconds. A random time between them, so that the watches of many drivers do not end together.
constexpr int min_watch = 300, max_watch = 600;

/// Returns true if the server's history from this version on is gone: list again.
bool is_too_old(const ApiError& error) {
  const std::string_view text = error.what();
  return error.status() == 410 || error.reason() == "Expired" ||
         (error.status() == 504 && text.find("Too large resource version") != text.npos);
}

}  // namespace

Watch::Watch(Client& client, std::string path, std::string label_selector,
             std::function<void(const Change&)> on_change)
    : client_(client),
      path_(std::move(path)),
      selector_(std::move(label_selector)),
      changes_(path_, std::move(on_change)) {}

async::Task<> Watch::list(core::CancelSource& cancel) {
  std::string next;
  Pages pages;
  changes_.begin_list();
  do {
    ApiCall call("list " + path_, "GET",
                 path_ + "?limit=" + std::to_string(page_size) +
                     "&labelSelector=" + net::url_encode(selector_) +
                     (next.empty() ? "" : "&continue=" + net::url_encode(next)));
    call.cancel = &cancel;
    auto page = co_await client_.call(std::move(call));
    changes_.take_page(page);
    next = pages.next(page);
  } while (!next.empty());
  changes_.end_list();
}

async::Task<> Watch::follow(core::CancelSource& cancel) {
  static std::minstd_rand random(std::random_device{}());
  const int seconds = std::uniform_int_distribution<int>(min_watch, max_watch)(random);
  ApiCall call("watch " + path_, "GET",
               path_ + "?watch=true&allowWatchBookmarks=true&timeoutSeconds=" +
                   std::to_string(seconds) + "&labelSelector=" + net::url_encode(selector_) +
                   "&resourceVersion=" + net::url_encode(changes_.version()));
  call.timeout = std::chrono::seconds(seconds + 30);
  // A stream may be silent for long, but the server opens it at once.
  async::Deadline opening(client_.loop().get_executor(), cancel, Duration(net::max_silence()),
                          core::StopLevel::immediate);
  call.cancel = &opening.source();
  call.on_open = [&opening] { opening.lift(); };
  call.on_body = [this](std::string_view bytes) {
    lines_.feed(bytes, [this](std::string_view line) {
      if (changes_.take_line(line)) has_received_ = true;
    });
  };
  lines_.clear();
  changes_.forget_error();
  has_received_ = false;
  try {
    co_await client_.send(std::move(call));
  } catch (const net::TransportError& error) {
    if (!opening.expired()) throw;
    throw net::TransportError(error.curl_code(), "watch " + path_ + ": no answer came in time");
  }
  if (changes_.error()) throw ApiError(*changes_.error());
}

async::Task<> Watch::run(core::CancelSource& cancel, std::function<void()> on_listed) {
  async::Backoff backoff(client_.retry_policy());
  const auto stopped = [&cancel] { return cancel.level() != core::StopLevel::none; };
  while (!stopped()) {
    bool failed = false;
    try {
      if (changes_.version().empty()) {
        co_await list(cancel);
        if (on_listed) std::exchange(on_listed, {})();
      }
      const auto opened = std::chrono::steady_clock::now();
      co_await follow(cancel);
      const auto lasted = std::chrono::steady_clock::now() - opened;
      has_received_ |= lasted > client_.retry_policy().max_pause;
    } catch (const ApiError& error) {
      if (is_too_old(error))
        changes_.forget_version();
      else if (!is_retryable(error) || backoff.exhausted())
        throw;
      core::log::info(std::string("kubernetes: ") + error.what());
      failed = true;
    } catch (const core::EnvironmentError& error) {
      if (stopped()) break;
      if (!dynamic_cast<const net::TransportError*>(&error)) throw;
      if (!has_received_ && backoff.exhausted()) throw;
      core::log::info(std::string("kubernetes: ") + error.what());
      failed = true;
    }
    if (has_received_) backoff.reset();
    // A server, or what stands before it, may end each stream as soon as it has begun.
    if ((!failed && has_received_) || stopped()) continue;
    // The first interruption is retried at once, repeated ones after a growing pause.
    co_await async::sleep(backoff.next(), &cancel);
  }
}

}  // namespace pipeline::kubernetes_api

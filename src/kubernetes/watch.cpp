#include "kubernetes/watch.hpp"

#include <set>

#include "core/bounded_json.hpp"
#include "core/log.hpp"
#include "kubernetes/json.hpp"
#include "net/url.hpp"

namespace pipeline::kubernetes {
namespace {

using nlohmann::json;

constexpr int page_size = 500;
constexpr int shortest_watch = 300, longest_watch = 600;  // Seconds.

/// Drops managedFields, which are not needed and make up half of an object.
bool leave_out(int, json::parse_event_t event, json& parsed) {
  return event != json::parse_event_t::key ||
         parsed.get_ref<const std::string&>() != "managedFields";
}

/// The server's history from this version on is gone: list again.
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
      on_change_(std::move(on_change)) {}

void Watch::tell(Change::Kind kind, json& object) {
  const auto name = text_at(object, "/metadata/name"), uid = text_at(object, "/metadata/uid"),
             version = text_at(object, "/metadata/resourceVersion");
  const auto found = known_.find(name);
  if (kind == Change::Kind::deleted) {
    if (found == known_.end() || found->second.uid != uid) return;
    known_.erase(found);
  } else if (found == known_.end()) {
    known_.emplace(name, Known{uid, version});
    kind = Change::Kind::added;
  } else if (found->second.uid !=
             uid) {  // Another object of the same name; the deletion of the first was not seen.
    json gone{{"metadata", {{"name", name}, {"uid", found->second.uid}}}};
    found->second = {uid, version};
    on_change_({Change::Kind::deleted, gone});
    kind = Change::Kind::added;
  } else {
    if (found->second.version == version) return;
    found->second.version = version;
    kind = Change::Kind::modified;
  }
  on_change_({kind, object});
}

async::Task<> Watch::list(core::CancelSource& cancel) {
  std::set<std::string> there;
  std::string next;
  do {
    Call call("list " + path_, "GET",
              path_ + "?limit=" + std::to_string(page_size) +
                  "&labelSelector=" + net::url_encode(selector_) +
                  (next.empty() ? "" : "&continue=" + net::url_encode(next)));
    call.cancel = &cancel;
    auto page = co_await client_.call(std::move(call));
    for (auto& item : page["items"]) {
      there.insert(text_at(item, "/metadata/name"));
      tell(Change::Kind::added, item);
    }
    version_ = text_at(page, "/metadata/resourceVersion");
    next = text_at(page, "/metadata/continue");
  } while (!next.empty());
  std::vector<json> gone;
  for (const auto& [name, known] : known_)
    if (!there.contains(name))
      gone.push_back(json{{"metadata", {{"name", name}, {"uid", known.uid}}}});
  for (auto& object : gone) tell(Change::Kind::deleted, object);
}

void Watch::take_line(std::string_view line) {
  if (line.empty() || error_) return;
  if (!core::is_within(line, {})) return;
  auto event = json::parse(line, leave_out, false);
  const auto type = text_at(event, "/type");
  if (!event.is_object() || !event.contains("object"))
    return;  // The line is incomplete because the stream was interrupted; it will be sent again.
  auto& object = event["object"];
  if (type == "ERROR") {
    error_.emplace(number_at(object, "/code"), text_at(object, "/reason"),
                   "the watch of " + path_ + " was ended: " + text_at(object, "/message"),
                   std::vector<std::string>());
    return;
  }
  if (auto version = text_at(object, "/metadata/resourceVersion"); !version.empty())
    version_ = std::move(version);
  if (type == "ADDED" || type == "MODIFIED") tell(Change::Kind::modified, object);
  if (type == "DELETED") tell(Change::Kind::deleted, object);
}

async::Task<> Watch::follow(core::CancelSource& cancel) {
  static std::minstd_rand random(std::random_device{}());
  const int seconds = std::uniform_int_distribution<int>(shortest_watch, longest_watch)(random);
  Call call("watch " + path_, "GET",
            path_ + "?watch=true&allowWatchBookmarks=true&timeoutSeconds=" +
                std::to_string(seconds) + "&labelSelector=" + net::url_encode(selector_) +
                "&resourceVersion=" + net::url_encode(version_));
  call.timeout = std::chrono::seconds(seconds + 30);
  call.cancel = &cancel;
  call.on_body = [this](std::string_view bytes) {
    heard_ = true;
    lines_.feed(bytes, [this](std::string_view line) { take_line(line); });
  };
  lines_.clear();
  error_.reset();
  heard_ = false;
  co_await client_.send(std::move(call));
  if (error_) throw ApiError(*error_);
}

async::Task<> Watch::run(core::CancelSource& cancel, std::function<void()> on_listed) {
  async::Backoff backoff(client_.retry_policy());
  const auto stopped = [&cancel] { return cancel.level() != core::StopLevel::none; };
  while (!stopped()) {
    bool failed = false;
    try {
      if (version_.empty()) {
        co_await list(cancel);
        if (on_listed) std::exchange(on_listed, {})();
      }
      co_await follow(cancel);
    } catch (const ApiError& error) {
      if (is_too_old(error))
        version_.clear();
      else if (!is_retryable(error) || backoff.exhausted())
        throw;
      core::log::info(std::string("kubernetes: ") + error.what());
      failed = true;
    } catch (const core::EnvironmentError& error) {
      if (stopped()) break;
      if (!dynamic_cast<const net::TransportError*>(&error)) throw;
      if (!heard_ && backoff.exhausted()) throw;
      core::log::info(std::string("kubernetes: ") + error.what());
      failed = true;
    }
    if (heard_) backoff.reset();
    if (!failed || stopped()) continue;
    // No pause after a single interruption; repeated ones are retried with a growing pause.
    asio::steady_timer pause(client_.loop(), backoff.next());
    core::CancelSource::Listener listener(cancel, [&pause](core::StopLevel) { pause.cancel(); });
    boost::system::error_code ignored;
    co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
}

}  // namespace pipeline::kubernetes

#include "orchestrators/kubernetes/pod_events.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "kubernetes_api/json.hpp"
#include "net/url.hpp"
#include "orchestrators/kubernetes/pod_failure.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using kubernetes_api::text_at;
using nlohmann::json;

/// Returns the events of an object; an empty object if the cluster does not answer.
/// @param selector a field selector that ends with a comma, or empty
async::Task<json> events_of(kubernetes_api::Client& client, std::string name,
                            std::string selector) {
  try {
    const auto query =
        "?fieldSelector=" + net::url_encode(selector + "involvedObject.name=" + name);
    co_return co_await client.get("read the events of " + name, client.path("", "events") + query);
  } catch (const core::EnvironmentError& error) {
    core::log::info(error.what());
  }
  co_return json::object();
}

}  // namespace

std::vector<std::string> warnings_in(const json& events, std::string_view shown) {
  constexpr std::string_view prefix = "Error: ";
  std::vector<std::string> lines;
  for (const auto& event : kubernetes_api::list_at(events, "/items")) {
    const auto message = text_at(event, "/message");
    const auto what =
        std::string_view(message).substr(message.starts_with(prefix) ? prefix.size() : 0);
    if (shown.find(what) != shown.npos) continue;
    auto line = text_at(event, "/reason") + ": " + message;
    if (std::ranges::find(lines, line) == lines.end()) lines.push_back(std::move(line));
  }
  return lines;
}

async::Task<> add_warnings(kubernetes_api::Client& client, std::string name, Failure& failure) {
  const auto events = co_await events_of(client, std::move(name), "type=Warning,");
  for (auto& line : warnings_in(events, failure.message))
    failure.details.push_back(std::move(line));
}

std::string refusal_in(const json& events) {
  std::string last, message;
  for (const auto& event : kubernetes_api::list_at(events, "/items")) {
    if (text_at(event, "/reason") != "FailedCreate") continue;
    auto time = text_at(event, "/lastTimestamp");
    if (!message.empty() && time < last) continue;
    last = std::move(time);
    message = text_at(event, "/message");
  }
  return message;
}

async::Task<std::string> last_refusal(kubernetes_api::Client& client, std::string job) {
  co_return refusal_in(co_await events_of(client, std::move(job), "type=Warning,"));
}

async::Task<> explain(kubernetes_api::Client& client, const json& pod, Failure& failure) {
  if (failure.kind != FailureKind::infrastructure || !is_unexplained(pod)) co_return;
  const auto events = co_await events_of(client, text_at(pod, "/metadata/name"), "");
  if (auto better = explained(pod, events)) failure = std::move(*better);
}

}  // namespace pipeline::orchestrators::kubernetes

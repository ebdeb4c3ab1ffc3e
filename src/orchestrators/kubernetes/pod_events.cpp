#include "orchestrators/kubernetes/pod_events.hpp"

#include <algorithm>

#include "core/log.hpp"
#include "kubernetes/json.hpp"
#include "net/url.hpp"

namespace pipeline::orchestrators {

using kubernetes::text_at;
using nlohmann::json;

async::Task<json> events_of(kubernetes::Client& client, std::string name, std::string selector) {
  try {
    const auto query =
        "?fieldSelector=" + net::url_encode(selector + "involvedObject.name=" + name);
    co_return co_await client.get("read the events of " + name, client.path("", "events") + query);
  } catch (const core::EnvironmentError& error) {
    core::log::info(error.what());
  }
  co_return json::object();
}

void add_events(Failure& failure, const json& events) {
  for (const auto& event : kubernetes::list_at(events, "/items")) {
    const auto message = text_at(event, "/message");
    if (failure.message.find(message) != std::string::npos) continue;
    auto line = text_at(event, "/reason") + ": " + message;
    if (std::find(failure.details.begin(), failure.details.end(), line) == failure.details.end())
      failure.details.push_back(std::move(line));
  }
}

}  // namespace pipeline::orchestrators

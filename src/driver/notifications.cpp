#include "driver/notifications.hpp"

#include <algorithm>

#include "notify/message.hpp"
#include "notify/webhook.hpp"

namespace pipeline::driver {

void send_notifications(Workspace& workspace, const PipelineSpec& pipeline, store::RunStore& store,
                        const std::string& run, EventSink& events, core::CancelSource& stop) try {
  if (pipeline.notify.empty()) return;
  const auto record = store.runs().find(run);
  if (!record) return;
  const auto command = workspace.options().name + " report " + run;
  const auto steps = store.runs().steps(run);
  net::HttpClient http(workspace.loop());
  const auto before = stop.level();
  core::CancelSource later;
  const core::CancelSource::Listener listener(stop, [&](core::StopLevel level) {
    if (level > before) later.stop(core::StopLevel::immediate);
  });
  notify::DeliveryLimits limits;
  if (before == core::StopLevel::immediate) limits.total = std::chrono::seconds(2);
  for (const auto& webhook : pipeline.notify) {
    if (!webhook.on.empty() && std::ranges::find(webhook.on, record->status) == webhook.on.end())
      continue;
    std::string where = "its webhook", reason;
    try {
      const auto address = notify::address_of(webhook);
      where = notify::shown_address(address);
      auto body = notify::message(webhook.format, *record, steps, command);
      reason = workspace.await(notify::deliver(http, address, std::move(body), later, limits));
    } catch (const core::EnvironmentError& error) {
      reason = error.what();
    }
    if (!reason.empty())
      events.emit(event::Notice{"", "the notification to " + where + " was not sent: " + reason});
  }
} catch (const std::exception& error) {
  events.emit(event::Notice{"", std::string("notifications were not sent: ") + error.what()});
}

std::string variable_of_notification(std::size_t index) {
  return "PIPE_NOTIFY_URL_" + std::to_string(index);
}

}  // namespace pipeline::driver

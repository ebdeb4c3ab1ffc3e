#include "driver/notifications.hpp"

#include <algorithm>

#include "core/identifier.hpp"
#include "net/url.hpp"
#include "notify/webhook.hpp"
#include "store/questions.hpp"

namespace pipeline::driver {

/// Sends one notification, and reports a failure.
async::Task<> Notifier::send(net::HttpClient& http, const NotifySpec& webhook, std::string body,
                             core::CancelSource& stop, notify::DeliveryLimits limits) {
  std::string where = "a webhook", reason;
  try {
    const auto address = notify::address_of(webhook);
    where = notify::shown_address(address);
    reason = co_await notify::deliver(http, address, std::move(body), stop, limits);
  } catch (const core::EnvironmentError& error) {
    reason = error.what();
  }
  if (!reason.empty())
    events_.emit(event::Notice{"", "the notification to " + where + " was not sent: " + reason});
}

void Notifier::send_end(core::CancelSource& stop) try {
  if (pipeline_.notify.empty()) return;
  const auto record = store_.runs().find(run_);
  if (!record) return;
  const auto command = workspace_.options().name + " report " + run_;
  const auto steps = store_.runs().steps(run_);
  net::HttpClient http(workspace_.loop());
  // The stop that ended the run does not end its notifications; a further one does.
  const auto before = stop.level();
  core::CancelSource later;
  const core::CancelSource::Listener listener(stop, [&](core::StopLevel level) {
    if (level > before) later.stop(core::StopLevel::immediate);
  });
  notify::DeliveryLimits limits;
  if (before == core::StopLevel::immediate) limits.total = std::chrono::seconds(2);
  for (const auto& webhook : pipeline_.notify)
    if (webhook.on.empty() || std::ranges::find(webhook.on, record->status) != webhook.on.end())
      workspace_.await(send(http, webhook, notify::message(webhook.format, *record, steps, command),
                            later, limits));
} catch (const std::exception& error) {
  events_.emit(event::Notice{"", std::string("notifications were not sent: ") + error.what()});
}

/// Returns the contents of a question's notification.
notify::StepQuestion Notifier::question_of(const std::string& step, const std::string& text) {
  notify::StepQuestion question{.run = run_,
                                .pipeline = pipeline_.name,
                                .step = step,
                                .text = text,
                                .command = workspace_.options().name + " answer " + run_ + " " +
                                           core::shell_quote(step) + " yes",
                                .address = {}};
  // The key is in the fragment, which browsers do not send: no server or proxy logs it, and a
  // service that opens addresses in messages before people do cannot answer the question.
  if (const auto& page = workspace_.options().page; !page.empty())
    question.address = page + "/answer?run=" + run_ + "&step=" + net::url_encode(step) + "#" +
                       store::make_answer_key(store_, run_, step);
  return question;
}

async::Task<> Notifier::send_question(std::string step, std::string question,
                                      core::CancelSource& stop) {
  if (pipeline_.notify.empty()) co_return;
  try {
    const auto message = question_of(step, question);
    net::HttpClient http(workspace_.loop());
    for (const auto& webhook : pipeline_.notify) {
      auto body = notify::question_message(webhook.format, message);
      co_await send(http, webhook, std::move(body), stop);
    }
  } catch (const std::exception& error) {
    events_.emit(event::Notice{"", std::string("a question was not sent: ") + error.what()});
  }
}

std::string variable_of_notification(std::size_t index) {
  return "PIPE_NOTIFY_URL_" + std::to_string(index);
}

}  // namespace pipeline::driver

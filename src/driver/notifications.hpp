/// @file
/// Sends a run's notifications: the questions of its steps, and its end.
#pragma once

#include <string>

#include <pipeline/events.hpp>

#include "async/task.hpp"
#include "driver/workspace.hpp"
#include "net/http.hpp"
#include "notify/message.hpp"
#include "notify/webhook.hpp"

namespace pipeline::driver {

/// Calls the pipeline's webhooks. A notification that fails is reported as a notice; nothing is
/// thrown.
class Notifier {
 public:
  /// Keeps references to all arguments.
  Notifier(Workspace& workspace, const PipelineSpec& pipeline, store::RunStore& store,
           const std::string& run, EventSink& events)
      : workspace_(workspace), pipeline_(pipeline), store_(store), run_(run), events_(events) {}

  /// Sends the question of a step. If a profile has the address of `pipe serve`, the message has
  /// the address of a page that answers the question.
  /// @param stop ends the delivery
  async::Task<> send_question(std::string step, std::string question, core::CancelSource& stop);
  /// Sends the notifications for this end of the run.
  /// @param stop stops the run. A stop during this call ends the delivery; after an immediate stop
  /// before this call, the delivery takes two seconds at most.
  void send_end(core::CancelSource& stop);

 private:
  notify::StepQuestion question_of(const std::string& step, const std::string& text);
  async::Task<> send(net::HttpClient& http, const NotifySpec& webhook, std::string body,
                     core::CancelSource& stop, notify::DeliveryLimits limits = {});

  Workspace& workspace_;
  const PipelineSpec& pipeline_;
  store::RunStore& store_;
  const std::string& run_;
  EventSink& events_;
};

/// Returns the variable in which the driver of a detached run finds the address of the pipeline's
/// webhook with this index.
std::string variable_of_notification(std::size_t index);

}  // namespace pipeline::driver

#include "orchestrators/kubernetes/service_logs.hpp"

#include <algorithm>

#include "async/timeout.hpp"
#include "core/log.hpp"
#include "kubernetes_api/json.hpp"
#include "orchestrators/containers/service_output.hpp"
#include "orchestrators/kubernetes/pod_services.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

constexpr std::chrono::milliseconds last_read_timeout{5'000};

bool has_output(const nlohmann::json& pod, const std::string& container) {
  for (const auto& status : kubernetes_api::list_at(pod, "/status/containerStatuses"))
    if (kubernetes_api::text_at(status, "/name") == container)
      return !kubernetes_api::at(status, "/state/waiting").is_object();
  return false;
}

}  // namespace

void ServiceLogs::begin(const StepSpec& step, const nlohmann::json& pod) {
  for (const auto& [name, service] : step.services) {
    const auto is_of_service = [&](const Output& output) { return output.service == name; };
    if (std::ranges::any_of(outputs_, is_of_service) || !has_output(pod, service_container(name)))
      continue;
    auto& output = outputs_.emplace_back();
    output.service = name;
    output.pod = kubernetes_api::text_at(pod, "/metadata/name");
    output.reading.emplace(executor_, read(output, Reading::follow));
  }
}

/// Passes on what the service has written, and with `follow` what it writes until it ends or
/// connections_ is stopped.
async::Task<> ServiceLogs::read(Output& output, Reading reading) {
  const bool follows = reading == Reading::follow;
  const auto write = [this, &output](std::string_view line) {
    log_.write(Stream::err, "[" + output.service + "] " + std::string(line) + "\n");
  };
  kubernetes_api::ApiCall call("read the log of the service '" + output.service + "'", "GET",
                               client_.path("", "pods", output.pod) +
                                   "/log?container=" + service_container(output.service) +
                                   (follows ? "&follow=true" : ""));
  call.timeout = follows ? std::chrono::milliseconds(0) : last_read_timeout;
  if (follows) call.cancel = &connections_;
  call.on_body = [&output, &write](std::string_view bytes) {
    output.tail.add(bytes);
    output.lines.feed(bytes, write);
  };
  try {
    co_await client_.send(std::move(call));
  } catch (const core::EnvironmentError& error) {
    if (!follows || connections_.level() == core::StopLevel::none)
      core::log::info("the output of the service '" + output.service +
                      "' ends early: " + error.what());
  }
  if (!output.lines.rest().empty()) write(output.lines.rest());
}

async::Task<> ServiceLogs::end(std::chrono::milliseconds limit) {
  async::Timeout timeout(executor_, [this] { connections_.stop(core::StopLevel::immediate); });
  timeout.start(limit);
  for (auto& output : outputs_) co_await output.reading->join();
  // A busy node may not have answered, and one that has no file watch left refuses to follow.
  for (auto& output : outputs_)
    if (output.tail.text().empty()) co_await read(output, Reading::once);
}

async::Task<> ServiceLogs::explain(Failure& failure) {
  co_await end(std::chrono::seconds(2));
  for (const auto& output : outputs_)
    containers::add_last_lines(output.service, output.tail.text(), failure);
}

}  // namespace pipeline::orchestrators::kubernetes

#include "orchestrators/docker/services.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <list>
#include <optional>

#include "async/joinable_task.hpp"
#include "orchestrators/containers/container_end.hpp"
#include "orchestrators/docker/service_network.hpp"
#include "orchestrators/docker/service_run.hpp"
#include "orchestrators/docker/service_spec.hpp"
#include "orchestrators/stopped.hpp"

namespace pipeline::orchestrators::docker_engine {
namespace {

using namespace std::chrono_literals;

/// How long to wait, after the step has failed, for the report of a service's end. Engines report
/// the ends of containers in any order, so the service may have ended first.
constexpr auto max_report_delay = 1s;

/// The services of an attempt, which run beside it.
class ServiceGroup {
 public:
  ServiceGroup(docker::EngineApi& engine, const Attempt& attempt, const ContainerOptions& options,
               asio::any_io_executor executor, const StringMap& images)
      : executor_(executor),
        changed_(executor, asio::steady_timer::time_point::max()),
        attempt_stop_(attempt.io.cancel, [this](core::StopLevel level) {
          stop_.stop(level);
          changed_.cancel();
        }) {
    for (const auto& [name, service] : attempt.step.services)
      services_.emplace_back(engine, attempt, options, name, images.at(name), [this] { tell(); });
  }

  /// Starts all services. Returns once they are ready, one of them has failed, or the attempt is
  /// stopped.
  async::Task<> start() {
    for (auto& service : services_)
      running_.emplace_back(executor_, service.run(), [this] { tell(); });
    const auto is_ready = [](const ServiceRun& service) { return service.is_ready(); };
    while (!is_over() && !std::ranges::all_of(services_, is_ready)) {
      changed_.expires_at(asio::steady_timer::time_point::max());
      boost::system::error_code cancelled;
      co_await changed_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    }
  }

  /// Waits a moment for a service whose end may have made the step fail.
  async::Task<> await_late_end() {
    if (is_over()) co_return;
    changed_.expires_after(max_report_delay);
    boost::system::error_code cancelled;
    co_await changed_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
  }

  /// Ends the connections to the services, which keep running until they are removed. Throws the
  /// error of a connection that failed before.
  async::Task<> end() {
    for (auto& service : services_) service.stop();
    std::exception_ptr error;
    for (auto& each : running_) {
      co_await each.join();
      if (each.error()) error = each.error();
    }
    if (error) std::rethrow_exception(error);
  }

  /// Stopped with the attempt, and when a service has failed.
  core::CancelSource& stop() { return stop_; }

  /// Returns the failure of the first service that has one.
  std::optional<Failure> failure() const {
    for (const auto& service : services_)
      if (service.failure()) return service.failure();
    return std::nullopt;
  }

  /// Returns true if the step must not begin or go on: it was stopped, or a service has ended.
  bool is_over() const {
    return stop_.level() != core::StopLevel::none || failure() ||
           std::ranges::any_of(running_, [](const auto& each) { return each.done(); });
  }

 private:
  void tell() {
    changed_.cancel();
    if (is_over()) stop_.stop(core::StopLevel::graceful);
  }

  asio::any_io_executor executor_;
  asio::steady_timer changed_;  ///< Cancelled on every change.
  core::CancelSource stop_;
  core::CancelSource::Listener attempt_stop_;
  std::list<ServiceRun> services_;
  std::list<async::JoinableTask> running_;
};

/// Replaces the step's failure by that of a service, which is its cause, unless the attempt was
/// stopped from outside.
void explain(AttemptResult& result, const std::optional<Failure>& of_service,
             core::StopLevel wanted) {
  if (!of_service || wanted != core::StopLevel::none || !result.failure) return;
  auto failure = *of_service;
  if (result.failure->kind != FailureKind::cancelled)
    failure.details.insert(failure.details.begin(), "the step " + result.failure->message);
  result.failure = std::move(failure);
}

/// Starts the services, and runs the step's container once they are ready.
async::Task<AttemptResult> run_beside(ServiceGroup& group, const RunContext& context,
                                      ContainerOptions& options) {
  AttemptResult result;
  co_await group.start();
  if (group.is_over()) {
    result.failure = was_stopped();
    co_return result;
  }
  const auto& attempt = context.attempt;
  const Attempt beside{
      attempt, {attempt.io.log, group.stop(), attempt.io.on_began, attempt.io.replace_checkpoint}};
  const RunContext beside_services{context.engine, beside, context.image, context.removals};
  co_return co_await run_container(beside_services, options);
}

}  // namespace

async::Task<AttemptResult> run_with_services(const RunContext& context, ContainerOptions& options,
                                             const StringMap& images) {
  auto& engine = context.engine;
  const auto& attempt = context.attempt;
  const auto executor = co_await asio::this_coro::executor;
  options.network = container_name(attempt);
  auto labels = label_filters(attempt, options);
  AttemptResult result;
  std::exception_ptr error;
  std::optional<docker::EngineError> refused;
  auto body = network_body(attempt, options);
  try {
    co_await remove_services(engine, labels);  // A dead driver may have left some.
    co_await make_network(engine, std::move(body));
  } catch (const docker::EngineError& no_network) {
    refused = no_network;
  }
  if (refused) {
    result.failure = containers::start_failure(*refused, attempt, context.image);
    co_return result;
  }
  ServiceGroup group(engine, attempt, options, executor, images);
  try {
    result = co_await run_beside(group, context, options);
    if (result.failure) co_await group.await_late_end();
  } catch (...) {
    error = std::current_exception();
  }
  try {
    co_await group.end();
  } catch (...) {
    if (!error) error = std::current_exception();
  }
  context.removals.begin(executor, remove_services(engine, std::move(labels)));
  if (error) std::rethrow_exception(error);
  explain(result, group.failure(), attempt.io.cancel.level());
  co_return result;
}

}  // namespace pipeline::orchestrators::docker_engine

#include "engine/run/environments.hpp"

#include <utility>

#include "engine/run/refusal.hpp"

namespace pipeline::engine {

Environments::Environments(asio::any_io_executor executor, const Services& services,
                           EventSink& events, bool is_shared, std::size_t steps,
                           std::function<void(async::Task<>)> spawn,
                           std::function<void(model::StepIndex)> on_failure)
    : executor_(std::move(executor)),
      orchestrator_(services.orchestrator),
      pipeline_(services.pipeline),
      events_(events),
      is_shared_(is_shared),
      spawn_(std::move(spawn)),
      on_failure_(std::move(on_failure)),
      states_(steps) {}

async::Task<orchestrators::Environment> Environments::look_up(const StepSpec& step) {
  return environment_of(orchestrator_, step, pipeline_, is_shared_);
}

void Environments::begin(model::StepIndex i, const StepSpec& step) {
  states_[i].prepared = std::make_unique<async::Gate>(executor_);
  spawn_(prepare(i, step));
}

async::Task<> Environments::prepare(model::StepIndex i, const StepSpec& step) {
  auto& state = states_[i];
  auto& stop = step.run_on == RunOn::success ? stop_ : final_stop_;
  try {
    auto environment = co_await orchestrator_.prepare(step, events_, stop);
    if (is_shared_)
      environment = co_await shared_environment(orchestrator_, step, std::move(environment));
    state.environment = std::move(environment);
  } catch (...) {
    state.error = std::current_exception();
    state.was_stopped = stop.level() != core::StopLevel::none;
  }
  state.prepared->open();
  if (has_failed(i)) on_failure_(i);
}

void Environments::stop_all(core::StopLevel level) {
  stop_.stop(level);
  final_stop_.stop(level);
}

void Environments::set(model::StepIndex i, orchestrators::Environment environment) {
  states_[i].environment = std::move(environment);
  if (states_[i].prepared) return;
  states_[i].prepared = std::make_unique<async::Gate>(executor_);
  states_[i].prepared->open();
}

async::Task<> Environments::prepared(model::StepIndex i) {
  co_await states_[i].prepared->wait();
  rethrow(i);
}

void Environments::rearm() {
  stop_.rearm();
  for (auto& state : states_)
    if (state.was_stopped) state = {};
}

void Environments::rethrow() const {
  for (const auto& state : states_)
    if (state.error) std::rethrow_exception(state.error);
}

void Environments::rethrow(model::StepIndex i) const {
  if (states_[i].error) std::rethrow_exception(states_[i].error);
}

}  // namespace pipeline::engine

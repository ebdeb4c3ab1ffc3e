#include "engine/environments.hpp"

#include <utility>

namespace pipeline::engine {

Environments::Environments(asio::any_io_executor executor,
                           orchestrators::Orchestrator& orchestrator, EventSink& events,
                           std::size_t steps, std::function<void(async::Task<>)> spawn,
                           std::function<void()> on_failure)
    : executor_(std::move(executor)),
      orchestrator_(orchestrator),
      events_(events),
      spawn_(std::move(spawn)),
      on_failure_(std::move(on_failure)),
      states_(steps) {}

void Environments::begin(core::StepIndex i, const StepSpec& step) {
  states_[i].prepared = std::make_unique<async::Gate>(executor_);
  spawn_(prepare(states_[i], step));
}

async::Task<> Environments::prepare(State& state, const StepSpec& step) {
  try {
    state.environment = co_await orchestrator_.prepare(step, events_, stop_);
  } catch (...) {
    state.error = std::current_exception();
  }
  state.prepared->open();
  if (state.error) on_failure_();
}

void Environments::set(core::StepIndex i, orchestrators::Environment environment) {
  states_[i].environment = std::move(environment);
  if (states_[i].prepared) return;
  states_[i].prepared = std::make_unique<async::Gate>(executor_);
  states_[i].prepared->open();
}

async::Task<> Environments::prepared(core::StepIndex i) {
  co_await states_[i].prepared->wait();
  if (states_[i].error) std::rethrow_exception(states_[i].error);
}

void Environments::rethrow() const {
  for (const auto& state : states_)
    if (state.error) std::rethrow_exception(state.error);
}

}  // namespace pipeline::engine

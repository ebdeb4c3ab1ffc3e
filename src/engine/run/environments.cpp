#include "engine/run/environments.hpp"

#include <utility>

#include "core/joined.hpp"
#include "engine/run/refusal.hpp"

namespace pipeline::engine {

Environments::Environments(const RunContext& context, std::size_t steps,
                           std::function<void(model::StepIndex)> on_failure)
    : context_(context), on_failure_(std::move(on_failure)), states_(steps) {}

void Environments::begin(model::StepIndex i, const StepSpec& step) {
  states_[i].prepared = std::make_unique<async::Gate>(context_.executor);
  context_.tasks.spawn(prepare(i, step));
}

/// Prepares the environment. Keeps an exception for prepared() and rethrow().
async::Task<> Environments::prepare(model::StepIndex i, const StepSpec& step) {
  auto& state = states_[i];
  auto& stop = step.run_on == RunOn::success ? stop_ : final_stop_;
  try {
    auto& orchestrator = context_.services.routes.of(step);
    auto environment = co_await orchestrator.prepare(step, context_.events, stop);
    if (context_.options.shared)
      environment = co_await shared_environment(orchestrator, step, std::move(environment));
    keep(i, std::move(environment));
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

void Environments::keep(model::StepIndex i, orchestrators::Environment environment) {
  const auto [kept, is_new] = distinct_.insert(std::move(environment));
  states_[i].environment = &*kept;
  if (!is_new || kept->requirements.empty()) return;
  auto& values = context_.services.store.key_values();
  const auto text = core::joined(kept->requirements, "\n");
  if (values.find(store::requirements_kind, kept->id) != text)
    values.put(store::requirements_kind, kept->id, text);
}

void Environments::set(model::StepIndex i, orchestrators::Environment environment) {
  keep(i, std::move(environment));
}

const orchestrators::Environment& Environments::of(model::StepIndex i) const {
  static const orchestrators::Environment none;
  return states_[i].environment ? *states_[i].environment : none;
}

async::Task<> Environments::prepared(model::StepIndex i) {
  if (states_[i].prepared) co_await states_[i].prepared->wait();
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

#include "engine/run/environments.hpp"

#include <utility>

#include "core/joined.hpp"
#include "engine/run/step_environment.hpp"

namespace pipeline::engine {

Environments::Environments(const RunContext& context, std::size_t steps,
                           std::function<void(model::StepIndex)> on_failure)
    : context_(context), on_failure_(std::move(on_failure)), ready_(steps) {}

void Environments::begin(model::StepIndex i, const StepSpec& step) {
  preparations_[i].ended = std::make_unique<async::Gate>(context_.executor);
  context_.tasks.spawn(prepare(i, step));
}

/// Prepares the environment. Keeps an exception for prepared() and rethrow().
async::Task<> Environments::prepare(model::StepIndex i, const StepSpec& step) {
  auto& preparation = preparations_.at(i);
  auto& stop = step.run_on == RunOn::success ? stop_ : final_stop_;
  try {
    auto& orchestrator = context_.services.routes.of(step);
    auto environment = co_await orchestrator.prepare(step, context_.events, stop);
    if (context_.options.remote_cache)
      environment = co_await shared_environment(orchestrator, step, std::move(environment));
    keep(i, std::move(environment));
  } catch (...) {
    preparation.error = std::current_exception();
    preparation.was_stopped = stop.level() != core::StopLevel::none;
  }
  preparation.ended->open();
  if (has_failed(i)) on_failure_(i);
}

void Environments::stop_all(core::StopLevel level) {
  stop_.stop(level);
  final_stop_.stop(level);
}

void Environments::keep(model::StepIndex i, orchestrators::Environment environment) {
  const auto [kept, is_new] = distinct_.insert(std::move(environment));
  ready_[i] = &*kept;
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
  return ready_[i] ? *ready_[i] : none;
}

async::Task<> Environments::prepared(model::StepIndex i) {
  const auto found = preparations_.find(i);
  if (found != preparations_.end()) co_await found->second.ended->wait();
  rethrow(i);
}

void Environments::rearm() {
  stop_.rearm();
  std::erase_if(preparations_, [this](const auto& each) {
    if (each.second.was_stopped) ready_[each.first] = nullptr;
    return each.second.was_stopped;
  });
}

void Environments::rethrow() const {
  for (const auto& [i, preparation] : preparations_)
    if (preparation.error) std::rethrow_exception(preparation.error);
}

void Environments::rethrow(model::StepIndex i) const {
  const auto found = preparations_.find(i);
  if (found != preparations_.end() && found->second.error)
    std::rethrow_exception(found->second.error);
}

}  // namespace pipeline::engine

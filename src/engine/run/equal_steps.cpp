#include "engine/run/equal_steps.hpp"

#include "async/sleep.hpp"
#include "core/scope_guard.hpp"
#include "engine/clock.hpp"

namespace pipeline::engine {

async::Task<std::shared_ptr<const void>> EqualSteps::acquire(const StepSpec& step,
                                                             const std::string& key,
                                                             core::CancelSource& stop,
                                                             bool& has_waited) {
  for (has_waited = false; stop.level() == core::StopLevel::none; has_waited = true) {
    if (locks_->try_take(key)) {
      const auto release = [locks = locks_, key] { locks->release(key); };
      co_return std::make_shared<const core::ScopeGuard<decltype(release)>>(release);
    }
    if (!has_waited) context_.events.emit(event::StepWaits{step.name, owner_of(key)});
    co_await async::sleep(poll_interval, &stop);
  }
  co_return nullptr;
}

/// Returns `step 'train' of run 20261121-8f3a, which makes the same result`.
std::string EqualSteps::owner_of(const std::string& key) const {
  auto& runs = context_.services.store.runs();
  for (const auto& run : runs.list()) {
    if (run.status != RunStatus::running) continue;
    for (const auto& step : runs.steps(run.id))
      if (step.key == key && step.status == StepStatus::running)
        return "step '" + step.name + "' of run " + run.id + ", which makes the same result";
  }
  return "another step, which makes the same result";
}

}  // namespace pipeline::engine

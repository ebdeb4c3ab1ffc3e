#include "engine/run/step_limits.hpp"

#include <iterator>
#include <utility>

#include "async/sleep.hpp"
#include "engine/clock.hpp"

namespace pipeline::engine {
namespace {

/// Pause while another process has locked the folder.
constexpr std::chrono::milliseconds pause_while_locked(1);
/// Another user's program may keep the folder locked, so the number of tries is limited.
constexpr int max_tries = 500;

}  // namespace

async::Task<HeldUnits> StepLimits::acquire(const StepSpec& step, std::size_t rank,
                                           core::CancelSource& stop) {
  HeldUnits held;
  if (step.max_parallel && step.instance) {
    auto& places = places_.try_emplace(*step.instance->of, step.max_parallel).first->second;
    co_await places.acquire(rank);
    held.place = std::make_unique<async::Permit>(places);
  }
  if (!step.uses.empty()) {
    auto& turn = turns_.try_emplace(text_of(step), 1).first->second;
    co_await turn.acquire(rank);
    const async::Permit permit(turn);
    held.locks = co_await wait_for_units(step, stop);
  }
  co_return held;
}

async::Task<std::vector<core::Descriptor>> StepLimits::wait_for_units(const StepSpec& step,
                                                                      core::CancelSource& stop) {
  for (bool is_first = true; stop.level() == core::StopLevel::none; is_first = false) {
    if (auto taken = co_await try_take(step, stop)) co_return std::move(*taken);
    if (is_first) context_.events.emit(event::StepWaits{step.name, text_of(step)});
    co_await async::sleep(poll_interval, &stop);
  }
  co_return std::vector<core::Descriptor>{};
}

/// Takes all units that the step uses, or none.
async::Task<std::optional<std::vector<core::Descriptor>>> StepLimits::try_take(
    const StepSpec& step, core::CancelSource& stop) {
  if (!folder_) folder_.emplace();
  for (int tries = 0; tries < max_tries && stop.level() == core::StopLevel::none; ++tries) {
    if (auto session = folder_->try_enter()) co_return units_of(step, *session);
    co_await async::sleep(pause_while_locked, &stop);
  }
  co_return std::nullopt;
}

/// Takes all units that the step uses; nothing if some are not free.
std::optional<std::vector<core::Descriptor>> StepLimits::units_of(
    const StepSpec& step, gpu::LockFolder::Session& session) const {
  std::vector<core::Descriptor> all;
  for (const auto& [name, count] : step.uses) {
    const auto limit = context_.services.pipeline.limits.find(name);
    if (limit == context_.services.pipeline.limits.end())
      continue;  // The start of the run reported it.
    auto taken = session.take_units(name, count, limit->second);
    if (taken.empty()) return std::nullopt;
    all.insert(all.end(), std::make_move_iterator(taken.begin()),
               std::make_move_iterator(taken.end()));
  }
  return all;
}

/// Returns `1 of the limit 'license'`.
std::string StepLimits::text_of(const StepSpec& step) {
  std::string text;
  for (const auto& [name, count] : step.uses)
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " of the limit '" + name + "'";
  return text;
}

}  // namespace pipeline::engine

#include "engine/run/run_checks.hpp"

#include <algorithm>

#include "async/on_pool.hpp"
#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "engine/data/download.hpp"
#include "engine/run/refusal.hpp"

namespace pipeline::engine {
namespace {

/// Checks before anything is built that all secrets of the steps are available.
void check_secrets(const std::vector<const StepSpec*>& steps) {
  for (const auto* step : steps) {
    if (!step->environment.empty()) resolve_environment(*step);
    if (!step->secrets.empty()) resolve_secrets(*step);
  }
}

}  // namespace

RunChecks::RunChecks(const Services& services, RunSteps& steps, Environments& environments,
                     Results& results, GpuPool& gpus, asio::thread_pool& pool,
                     const EngineOptions& options, EventSink& events, core::CancelSource& stop)
    : services_(services),
      steps_(steps),
      environments_(environments),
      results_(results),
      gpus_(gpus),
      pool_(pool),
      options_(options),
      events_(events),
      stop_(stop) {}

async::Task<> RunChecks::check(const std::vector<const StepSpec*>& all) {
  auto steps = all;
  std::erase_if(steps,
                [&](const StepSpec* step) { return is_ruled_out(*step, services_.artifacts); });
  check_secrets(steps);
  co_await results_.data().look_up(services_.pipeline, options_.shared);
  for (const auto* step : steps)
    for (const auto& input : step->inputs)
      if (input.data && !input.data->artifact.empty()) results_.data().artifact(*input.data);
  Downloads downloads(services_, events_, stop_);
  co_await results_.data().pins().lock(steps, downloads, events_, stop_);
  co_await async::on_pool(pool_, [this] { read_files(); });
  co_await gpus_.check(steps, services_.pipeline);
  auto obstacles = co_await services_.orchestrator.check(steps);
  refuse(std::move(obstacles), services_.pipeline);
  if (!results_.has_store() || std::ranges::none_of(steps, &StepSpec::cache)) co_return;
  const bool needs_nobody = co_await has_all_results();
  steps_.forget_outcomes();
  if (!needs_nobody) co_await results_.check_store();
}

/// Reads the data and the code of all steps, which takes as long as they are large: on the loop it
/// would keep signals waiting.
void RunChecks::read_files() {
  for (model::StepIndex i = 0; i < steps_.size(); ++i) {
    for (const auto& input : steps_.spec(i).inputs)
      if (input.data && !input.data->path.empty()) results_.data().of(input.data->path);
    try {
      results_.read_code(steps_.spec(i));
    } catch (const core::EnvironmentError&) {  // Reported when the step is started.
    } catch (const core::InputError&) {
    }
  }
}

/// Returns true if every step has an earlier result on this machine, or is skipped. Leaves the
/// outcomes in the states.
async::Task<bool> RunChecks::has_all_results() {
  if (!options_.use_cache || steps_.may_grow()) co_return false;
  const auto order = steps_.graph().topological_order();
  const auto is_skipped = [this](model::StepIndex i) {
    return steps_[i].status == StepStatus::skipped;
  };
  try {
    for (const auto i : *order) {
      if (is_conditional(steps_.spec(i)) ||
          std::ranges::any_of(steps_.graph().needs(i), is_skipped)) {
        const auto decision = decide(steps_.spec(i), steps_.before(i), services_.artifacts);
        if (!decision.value) co_return false;
        if (!*decision.value) {
          steps_[i].status = StepStatus::skipped;
          continue;
        }
      }
      const auto environment = co_await environments_.look_up(steps_.spec(i));
      if (environment.id.empty()) co_return false;
      const auto key = results_.key(steps_.spec(i), environment.id, steps_.outputs_of());
      auto entry = results_.here(steps_.spec(i), key.key);
      if (!entry) co_return false;
      steps_[i].outputs = std::move(entry->outputs);
      steps_[i].status = StepStatus::cached;
    }
  } catch (const core::EnvironmentError&) {  // Reported when the step is started.
    co_return false;
  }
  co_return true;
}

}  // namespace pipeline::engine

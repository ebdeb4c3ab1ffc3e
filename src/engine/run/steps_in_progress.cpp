#include "engine/run/steps_in_progress.hpp"

namespace pipeline::engine {

std::optional<std::size_t> StepsInProgress::queue_of(const StepSpec& step) {
  if (gpus_.wants(step) || !step.uses.empty() || step.max_parallel != 0 || !step.wait.empty())
    return std::nullopt;
  /// Number of steps beyond the job slots: they look for results elsewhere and prepare
  /// environments.
  constexpr unsigned max_preparing = 500;
  const auto& capabilities = routes_.capabilities_of(step);
  const auto name = capabilities.name + " " + (step.instance ? *step.instance->of : std::string());
  const auto [found, is_new] = numbers_.try_emplace(name, queues_.size());
  if (is_new) queues_.push_back({slots_.of(capabilities).count() + max_preparing});
  return found->second;
}

bool StepsInProgress::has_room(std::size_t queue) const {
  return queues_[queue].count < queues_[queue].limit;
}

StepsInProgress::Place StepsInProgress::add(const StepSpec& step) {
  const auto queue = queue_of(step);
  if (queue) ++queues_[*queue].count;
  return Place(queue ? &queues_[*queue].count : nullptr, [](unsigned* count) { --*count; });
}

}  // namespace pipeline::engine

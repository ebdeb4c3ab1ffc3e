#include "store/failures.hpp"

#include <algorithm>

namespace pipeline::store {
namespace {

/// Returns the kind with this name; exit_code for the empty name of records that an earlier version
/// of this program made.
FailureKind kind_named(const std::string& name) {
  constexpr int last = static_cast<int>(FailureKind::infrastructure);
  for (int i = 0; i <= last; ++i)
    if (to_string(static_cast<FailureKind>(i)) == name) return static_cast<FailureKind>(i);
  return FailureKind::exit_code;
}

}  // namespace

std::vector<model::StepFailure> failures_of(const std::vector<StepRecord>& steps) {
  std::vector<const StepRecord*> failed;
  for (const auto& step : steps)
    if (step.status == StepStatus::failed) failed.push_back(&step);
  std::ranges::stable_sort(failed, {}, &StepRecord::ended);
  std::vector<model::StepFailure> failures;
  for (const auto* step : failed)
    failures.push_back({step->name,
                        {kind_named(step->failure.kind), step->message, step->failure.hints,
                         step->failure.details}});
  return failures;
}

}  // namespace pipeline::store

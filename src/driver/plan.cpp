#include "driver/plan.hpp"

#include <algorithm>
#include <iterator>

namespace pipeline::driver {
namespace {

/// Returns the steps of which the run may start attempts.
std::vector<const StepSpec*> steps_to_run(const std::vector<engine::StepPlan>& plans) {
  using Action = engine::StepPlan::Action;
  std::vector<const StepSpec*> steps;
  for (const auto& plan : plans)
    if (plan.action != Action::reuse && plan.action != Action::skip &&
        (steps.empty() || steps.back() != plan.spec))
      steps.push_back(plan.spec);
  return steps;
}

}  // namespace

PipelinePlan plan_run(Session& session, const Say& say, bool with_keys) {
  session.pipeline();  // Errors of the file are reported before errors of the machine.
  require_engine(session);
  PipelinePlan plan;
  plan.warnings = check_steps(session, say);
  plan.steps =
      session.workspace.await(engine::plan(session.services(), session.run_options(), with_keys));
  std::ranges::move(check_missing_gpus(session, steps_to_run(plan.steps), say),
                    std::back_inserter(plan.warnings));
  return plan;
}

}  // namespace pipeline::driver

/// @file
/// A starter that starts nothing: a plan and the check for earlier results walk the graph with it.
#pragma once

#include <utility>

#include "engine/run/graph_walk.hpp"

namespace pipeline::engine {

class DryStarter : public StepStarter {
 public:
  explicit DryStarter(GraphWalk& walk) : steps_(walk.steps()), scheduler_(walk.scheduler()) {}

  void expanded(const std::vector<const StepSpec*>& /*steps*/,
                std::pair<model::StepIndex, std::size_t> /*instances*/,
                std::optional<unsigned> /*round*/) override {}
  void end_instances(model::StepIndex i) override;
  async::Task<bool> wait() override { co_return false; }

 protected:
  /// Records the decision, and ends the step, so that its dependents get their turn.
  void end_step(model::StepIndex i, Decision decision);

  RunSteps& steps_;
  model::Scheduler& scheduler_;
};

}  // namespace pipeline::engine

/// @file
/// Recovers outputs that are damaged, or were temporary and are needed once more: downloads them,
/// or runs their step again.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "async/gate.hpp"
#include "async/task_group.hpp"
#include "engine/attempt/attempt.hpp"
#include "engine/graph/run_steps.hpp"
#include "engine/run_context.hpp"

namespace pipeline::engine {

/// If two steps need the same output, it is made once: the second step waits for the first.
class OutputRecovery {
 public:
  /// Runs the step, which has ended, and records the outcome in its status.
  using RunStep = std::function<async::Task<>(model::StepIndex)>;
  /// Downloads the outputs that are missing here from the remote cache. Returns the cache's name;
  /// empty if the cache does not have them.
  using Download = std::function<async::Task<std::string>(model::StepIndex)>;

  OutputRecovery(const RunContext& context, RunSteps& steps, RunStep run_step, Download download)
      : context_(context),
        steps_(steps),
        run_step_(std::move(run_step)),
        download_(std::move(download)) {}

  /// Runs a step with damaged outputs again, unless another step has caused that already, or the
  /// remote cache has the outputs. Throws EnvironmentError if the step fails.
  /// @param damaged the error that has shown the damage
  /// @param reason  for the notice, such as `because its output is damaged`
  async::Task<> make_again(model::StepIndex i, const DamagedInput& damaged,
                           const std::string& reason);

  /// Makes those inputs of a step again that were temporary and are removed.
  /// @return true if there were such inputs
  async::Task<bool> restore_inputs(model::StepIndex i);

  /// Returns true if some step has run again, so that its outputs may differ from those in the keys
  /// of steps that have been waiting since.
  bool has_rerun_any() const { return has_rerun_any_; }

 private:
  async::Task<> restore(std::string output, model::StepIndex i, model::StepIndex reader);
  async::Task<> try_restore(std::string output, model::StepIndex i, model::StepIndex reader);

  const RunContext& context_;
  RunSteps& steps_;
  const RunStep run_step_;
  const Download download_;
  /// The steps that run again; each gate opens when its step has ended.
  std::map<model::StepIndex, std::shared_ptr<async::Gate>> running_;
  bool has_rerun_any_ = false;
};

}  // namespace pipeline::engine

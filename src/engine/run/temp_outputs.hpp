/// @file
/// Removes the artifacts of outputs with `temp: true` once no step of the run needs them any more.
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "engine/cache/results.hpp"
#include "engine/graph/run_steps.hpp"
#include "engine/run/journal.hpp"

namespace pipeline::engine {

/// An artifact stays while another run of the state folder is in progress, and if something else
/// names it: an output without `temp`, of any run, or a published name.
class TempOutputs {
 public:
  TempOutputs(const RunContext& context, RunSteps& steps, Journal& journal, Results& results);

  /// Called when a step has succeeded or is reused. Removes those of its inputs that are temporary
  /// and needed by no other step.
  void step_ended(model::StepIndex i);
  /// Removes the artifacts that are left. @param succeeded no step of the run has to run again
  async::Task<> run_ended(bool succeeded);

 private:
  /// The names of a step and of its output.
  using Source = std::pair<std::string, std::string>;
  /// Whether skipped steps may still run: in this run, or in one that resumes it.
  enum class SkippedSteps { may_run, are_done };
  void index();
  bool is_needed(const Source& source, SkippedSteps skipped) const;
  void drop(model::StepIndex i, const std::string& output);
  async::Task<> remove_soon();
  std::set<core::Digest> needed(SkippedSteps skipped);
  async::Task<> remove(SkippedSteps skipped);

  const RunContext& context_;
  RunSteps& steps_;
  Journal& journal_;
  Results& results_;
  bool has_any_;  ///< The pipeline has outputs with `temp`.
  /// The steps that take each output, among the first `indexed_` steps.
  std::map<Source, std::vector<model::StepIndex>> readers_;
  std::size_t indexed_ = 0;
  std::vector<core::Digest> dropped_;  ///< Artifacts to remove.
  bool is_removal_scheduled_ = false;
};

}  // namespace pipeline::engine

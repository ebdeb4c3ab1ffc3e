/// @file
/// The steps of a run: those that it selects, how far each has come, and what each has made.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/graph.hpp"
#include "engine/condition.hpp"
#include "engine/gather.hpp"
#include "engine/journal.hpp"

namespace pipeline::engine {

struct StepState {
  StepStatus status = StepStatus::pending;
  std::vector<store::OutputRecord> outputs;  ///< Filled once it has succeeded or is reused.
  std::optional<ResumePoint> resume_point;   ///< Set in a resumed run.
};

/// A step's index counts the selected steps, in the file's order.
class RunSteps {
 public:
  /// Keeps a reference to the pipeline. Throws InputError if there is no step `only_step`.
  /// @param only_step it and what it depends on are selected; empty: all steps
  RunSteps(const PipelineSpec& pipeline, const std::string& only_step);

  std::size_t size() const { return states_.size(); }
  const StepSpec& spec(core::StepIndex i) const { return pipeline_.steps[selected_[i]]; }
  const core::Graph& graph() const { return graph_; }
  StepState& operator[](core::StepIndex i) { return states_[i]; }
  const StepState& operator[](core::StepIndex i) const { return states_[i]; }
  StepState& state_of(const std::string& name) { return states_[position_.at(name)]; }

  std::vector<const StepSpec*> with(StepStatus status) const;
  void forget_outcomes();  ///< Makes all steps pending again.
  /// Returns for each step whether it waits for the end of the steps before it instead of for their
  /// success.
  std::vector<bool> final_steps() const;
  /// The function refers to this object.
  OutputsOf outputs_of() const;
  /// The functions refer to this object.
  Predecessors before(core::StepIndex i) const;

 private:
  Outcome outcome_of(core::StepIndex i) const;
  const store::OutputRecord* find_output(const SourceSpec& source) const;

  const PipelineSpec& pipeline_;
  std::vector<std::size_t> selected_;
  core::Graph graph_;
  std::vector<StepState> states_;
  std::unordered_map<std::string_view, core::StepIndex> position_;
};

}  // namespace pipeline::engine

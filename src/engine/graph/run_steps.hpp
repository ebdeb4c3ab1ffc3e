/// @file
/// The selected steps of a run, their progress and their outputs. Steps whose matrix has values of
/// another step are replaced by instances when that step has made them, and repeated steps by the
/// steps of one round after the other.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/graph/condition.hpp"
#include "engine/graph/gather.hpp"
#include "engine/graph/matrix_expansion.hpp"
#include "engine/graph/rounds.hpp"
#include "engine/graph/step_names.hpp"
#include "engine/types.hpp"
#include "model/graph.hpp"

namespace pipeline::engine {

/// The progress of a step.
struct StepState {
  std::vector<store::OutputRecord> outputs;  ///< Filled once the step has succeeded or is reused.
  Rare<ResumePoint> resume_point;            ///< Set in a resumed run.
  StepStatus status = StepStatus::pending;
  /// In a plan: a condition over outputs that are not known yet decides whether the step runs.
  bool may_be_skipped = false;
  bool runs_again = false;  ///< Has ended, and runs again for steps that need its outputs.
  /// Set once the step is replaced by instances: the index of the first, and their number. The step
  /// ends with its instances. The instances of a loop's head (the step that has `repeat`) are all
  /// steps of the current round; the other steps of the loop have none, since they end with the
  /// head.
  std::optional<std::pair<model::StepIndex, model::StepIndex>> instances = {};
};

/// A step's index counts the selected steps, in the file's order, and then the instances.
class RunSteps {
 public:
  /// Keeps a reference to the pipeline. Throws InputError if there is no step `only_step`.
  /// @param only_step selects this step and the steps that it depends on; empty: all steps
  RunSteps(const PipelineSpec& pipeline, const std::string& only_step);

  std::size_t size() const { return states_.size(); }
  const StepSpec& spec(model::StepIndex i) const { return *specs_[i]; }
  /// Returns the step as the pipeline declares it, before instances replaced its sources.
  /// @param i a selected step, not an instance
  const StepSpec& declared(model::StepIndex i) const { return pipeline_.steps[selected_[i]]; }
  /// The dependencies of the selected steps; without instances and rounds.
  const model::Graph& graph() const { return graph_; }
  /// The dependencies of a step, as they were when it was selected or made.
  std::vector<model::StepIndex> needs(model::StepIndex i) const;
  /// Returns the state of a step.
  StepState& operator[](model::StepIndex i) { return states_[i]; }
  const StepState& operator[](model::StepIndex i) const { return states_[i]; }
  StepState& state_of(const std::string& name) { return states_[position_.at(name)]; }
  model::StepIndex index_of(const std::string& name) const { return position_.at(name); }

  /// Returns the step that made the outputs of `name`; for a repeated step, that of the last round.
  model::StepIndex producer(const std::string& name) const;

  /// Returns the steps with this status, without those that were replaced by instances.
  std::vector<const StepSpec*> with_status(StepStatus status) const;
  /// Returns for each step from `first` on whether it waits for the end, not the success, of
  /// earlier steps: it runs on their failure, or may do without some of them.
  std::vector<bool> wait_for_ends(model::StepIndex first = 0) const;
  /// Returns a function that finds existing outputs; it refers to this object.
  OutputsOf outputs_of() const;
  /// The functions refer to this object, and find only outputs that this machine has.
  Predecessors before(model::StepIndex i, store::ArtifactStore& artifacts) const;
  /// Returns `unknown` also for a step with a result that may still be skipped.
  Outcome outcome_of(model::StepIndex i) const;
  /// Returns true if one of the steps before this one has failed or was skipped, or may be skipped.
  bool has_lost_need(model::StepIndex i) const;

  /// Returns the pending steps that share a dynamic matrix, that is, one with values of another
  /// step, once all of these values are made. Returns each such matrix once; empty if there is
  /// none.
  std::vector<model::StepIndex> take_dynamic_matrix();
  /// The dependencies of each instance of a step.
  using InstanceNeeds = std::vector<std::vector<model::StepIndex>>;
  /// Adds the instances of steps that share one matrix, and makes them the sources of steps that
  /// gather their outputs. Throws InputError, and adds nothing, if the values are not valid for a
  /// matrix.
  /// @param steps as take_dynamic_matrix() returns them
  /// @return the needs of each of the steps
  std::vector<InstanceNeeds> expand(const std::vector<model::StepIndex>& steps,
                                    store::ArtifactStore& artifacts);

  /// Returns true for the step that has the `repeat` of its loop.
  bool is_loop_head(model::StepIndex i) const { return repeats_.contains(i); }
  /// Returns the steps of the loop, the head first.
  std::vector<const StepSpec*> repeated_with(model::StepIndex head) const;
  /// Returns the number of rounds that have begun.
  unsigned rounds(model::StepIndex head) const;
  /// Adds the steps of the next round.
  /// @return the dependencies of each of them
  InstanceNeeds add_round(model::StepIndex head);
  /// Decides whether the current round, which has ended, is the last one, as far as this machine
  /// has its outputs. See Rounds::is_last().
  ConditionValue is_last_round(model::StepIndex head, store::ArtifactStore& artifacts) const;
  /// Makes the outputs of the current round the outputs of the repeated steps.
  void end_rounds(model::StepIndex head);
  /// Calls end_rounds() for all loops that have ended, after one of their steps has run again.
  void refresh_loops();
  /// Returns the steps of all rounds, each with its repeated step.
  std::vector<std::pair<model::StepIndex, model::StepIndex>> steps_of_rounds(
      model::StepIndex head) const;

  /// Returns how the step's instances have ended, as one outcome, and the instance that decided it.
  std::pair<Outcome, const StepSpec*> outcome_of_instances(model::StepIndex i) const;

 private:
  /// Steps that are repeated together.
  struct Repeat {
    Rounds rounds;
    std::vector<model::StepIndex> steps;   ///< In their positions.
    std::vector<model::StepIndex> firsts;  ///< The first step of each round.
  };
  void note_repeats();
  void note_dynamic(const std::vector<model::StepIndex>& steps);
  void append(std::vector<StepSpec> made);
  InstanceNeeds connect(model::StepIndex first);
  const store::OutputRecord* find_output(const SourceSpec& source) const;
  FindOutput find_local(store::ArtifactStore& artifacts) const;
  void note_reads(model::StepIndex i);
  InstanceNeeds add(model::StepIndex base, std::vector<StepSpec> instances,
                    const MatrixExpansion& expansion);

  const PipelineSpec& pipeline_;
  std::vector<std::size_t> selected_;  ///< Indices in the pipeline's steps.
  model::Graph graph_;
  std::deque<StepState> states_;
  std::vector<const StepSpec*> specs_;
  /// The instances, and the steps that gather them, at stable addresses.
  std::deque<StepSpec> made_;
  StepNames position_{specs_};
  /// The steps of each matrix whose values are not known yet.
  std::vector<std::vector<model::StepIndex>> dynamic_;
  /// For a step with such a matrix, the steps that gather its outputs.
  std::unordered_map<model::StepIndex, std::vector<model::StepIndex>> readers_;
  /// Keyed by the step that has the `repeat`.
  std::unordered_map<model::StepIndex, Repeat> repeats_;
};

}  // namespace pipeline::engine

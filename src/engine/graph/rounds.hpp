/// @file
/// Steps that run in rounds: the steps of each round, and whether another round follows.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <pipeline/spec.hpp>

#include "engine/graph/condition.hpp"
#include "model/graph.hpp"

namespace pipeline::engine {

/// A loop: steps of a pipeline that run in rounds together.
class Rounds {
 public:
  /// @param steps all steps of the loop, as the pipeline has them; not empty
  explicit Rounds(std::vector<const StepSpec*> steps);

  /// The number of steps in a round. The steps are ordered: each comes after those that it needs.
  std::size_t size() const { return steps_.size(); }
  /// Returns size() for a step outside of the loop.
  std::size_t position_of(const std::string& step) const;
  /// The head of the loop: the step that has `until` and `max`.
  const StepSpec& head() const { return *steps_[head_]; }

  /// Returns the steps of a round, counted from 0, in their positions.
  /// @param steps the steps of the loop in their positions; instances that the run has made may
  /// have replaced their sources
  std::vector<StepSpec> steps_of(unsigned round, const std::vector<const StepSpec*>& steps) const;
  std::vector<StepSpec> steps_of(unsigned round) const { return steps_of(round, steps_); }
  /// Decides whether the round, which has ended, is the last one. The `reason` says why `until` is
  /// not true; the `error` is set if `until` cannot be evaluated.
  ConditionValue is_last(unsigned round, const FindOutput& find_output,
                         store::ArtifactStore& artifacts) const;

 private:
  std::string name_in(const std::string& step, unsigned round) const;
  StepSpec step_of(const StepSpec& step, unsigned round) const;

  std::vector<const StepSpec*> steps_;
  std::size_t head_ = 0;
};

}  // namespace pipeline::engine

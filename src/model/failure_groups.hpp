/// @file
/// Failures of several steps that are the same one.
#pragma once

#include <string>
#include <vector>

#include <pipeline/events.hpp>

namespace pipeline::model {

struct StepFailure {
  std::string step;
  Failure failure;
};

/// Steps that failed for the same reason: an image that several of them need; instances of one
/// matrix that failed in the same way.
struct FailureGroup {
  std::vector<std::string> steps;  ///< In the order of the failures.
  Failure failure;                 ///< That of the first step.
  std::string matrix = {};         ///< The step with the matrix; empty: they are not instances.
};

/// Returns true for failures of a build or a machine, which the step itself did not print.
bool is_of_environment(FailureKind kind);

/// Groups equal failures, in the order in which they came. Failures of instances are equal if their
/// messages and the last lines that they printed are, apart from numbers and their own names.
std::vector<FailureGroup> group_failures(std::vector<StepFailure> failures);

/// Returns at most three names: `train.c-1, train.c-2, train.c-3 and 37 more steps (40 instances)`.
std::string names_of(const FailureGroup& group);

}  // namespace pipeline::model

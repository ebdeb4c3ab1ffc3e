/// @file
/// Groups equal failures of several steps, so that each is reported once.
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
  Failure failure;                 ///< The failure of the first step.
  std::string matrix = {};  ///< The step with the matrix; empty if the steps are not instances.
};

/// Returns true for failures of a build or a machine, which the step itself did not print.
bool is_of_environment(FailureKind kind);

/// Groups equal failures, in the order of `failures`. Failures of instances are equal if their
/// messages and the last lines that they printed differ only in numbers and the instances' names.
std::vector<FailureGroup> group_failures(std::vector<StepFailure> failures);

/// Returns at most three names, and the number of the others: `train.c-1, train.c-2, train.c-3 and
/// 37 more steps (40 instances)`.
std::string names_of(const FailureGroup& group);

}  // namespace pipeline::model

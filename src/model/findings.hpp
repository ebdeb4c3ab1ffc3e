/// @file
/// Findings about steps before a run. A finding of several steps is reported once.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include <pipeline/spec.hpp>

#include "core/diagnostic.hpp"

namespace pipeline::model {

class Findings {
 public:
  /// @param finding its message does not name the steps; it is reported at the position of the
  /// first step
  void add(std::span<const StepSpec* const> steps, core::Diagnostic finding);
  /// Returns the findings in the order in which they were added, with the steps in their messages.
  std::vector<core::Diagnostic> all() const;

 private:
  std::vector<std::pair<core::Diagnostic, std::vector<const StepSpec*>>> found_;
};

}  // namespace pipeline::model

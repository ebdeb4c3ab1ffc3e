/// @file
/// Findings about steps before a run. A finding of several steps is reported once.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <unordered_set>
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
  struct Found {
    core::Diagnostic finding;
    std::vector<const StepSpec*> steps;         ///< In the order in which they were added.
    std::unordered_set<const StepSpec*> known;  ///< The same steps.
  };
  /// Orders findings by all that is reported of them, except the position.
  struct IsBefore {
    bool operator()(const core::Diagnostic& a, const core::Diagnostic& b) const;
  };

  std::vector<Found> found_;
  std::map<core::Diagnostic, std::size_t, IsBefore> index_;  ///< Indices in `found_`.
};

}  // namespace pipeline::model

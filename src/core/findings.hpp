/// @file
/// What is to be said of steps before they run: what is true of several is said once, of all of
/// them.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include <pipeline/spec.hpp>

#include "core/diagnostic.hpp"

namespace pipeline::core {

class Findings {
 public:
  /// @param finding its message without the steps' names; its place is where the first of them
  /// begins
  void add(std::span<const StepSpec* const> steps, Diagnostic finding);
  std::vector<Diagnostic> all() const;

 private:
  std::vector<std::pair<Diagnostic, std::vector<const StepSpec*>>> found_;
};

}  // namespace pipeline::core

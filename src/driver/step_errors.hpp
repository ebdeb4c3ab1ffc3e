/// @file
/// Collects errors of several steps and reports them together.
#pragma once

#include <set>
#include <string>
#include <vector>

#include <pipeline/spec.hpp>

#include "core/diagnostic.hpp"
#include "engine/run/refusal.hpp"
#include "model/step_span.hpp"

namespace pipeline::driver {

/// Collects the InputErrors of steps. An error without a position gets its step's line.
class StepErrors {
 public:
  /// Calls `work`, which checks the step, and collects the errors that it throws.
  template <class Work>
  void collect(const StepSpec& step, Work&& work) {
    try {
      work();
    } catch (const core::InputError& error) {
      if (!error.file().empty()) throw;  // The error has positions of its own.
      for (auto diagnostic : error.diagnostics()) {
        if (diagnostic.span.line == 0) diagnostic.span = model::span_of(step);
        if (seen_.insert(diagnostic.message + std::to_string(diagnostic.span.line)).second)
          found_.push_back(std::move(diagnostic));
      }
    }
  }
  /// Throws one InputError with all errors, if there are any.
  void report(const PipelineSpec& pipeline) { engine::refuse(std::move(found_), pipeline); }

 private:
  std::vector<core::Diagnostic> found_;
  std::set<std::string> seen_;  ///< Message and line of each error, so that none is repeated.
};

}  // namespace pipeline::driver

/// @file
/// The position of a step in its file, for errors about the whole step.
#pragma once

#include <pipeline/spec.hpp>

#include "core/diagnostic.hpp"

namespace pipeline::model {

/// Returns the position of the step's name; without a line if that is not known.
inline core::Span span_of(const StepSpec& step) {
  return {.line = step.line, .column = step.column, .file = static_cast<std::uint16_t>(step.file)};
}

}  // namespace pipeline::model

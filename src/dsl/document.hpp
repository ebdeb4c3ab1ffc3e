/// @file
/// Converts a pipeline of the DSL to the document that pipeline.yaml would be, so that the same
/// code reads, checks and merges both.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <pipeline/pipeline.hpp>

#include "core/value.hpp"

namespace pipeline::dsl {

/// Code of the error about a text that no document can hold.
inline constexpr std::string_view not_utf8 = "not-utf8";

struct Document {
  core::Value
      root;  ///< The line of every span is the number of the step, from 1; 0 for the pipeline.
  std::vector<core::Diagnostic> diagnostics;
};

/// Returns the pipeline's document, with the errors that its reader would not find.
/// @param program first word of a function step's command; empty: the command begins with
/// `--pipe-step`, as in ProgramStep
Document document_of(const Pipeline& pipeline, const std::string& program = {});

}  // namespace pipeline::dsl

/// @file
/// A pipeline of the DSL as the document that pipeline.yaml is: so that both are read, checked and
/// merged by the same code.
#pragma once

#include <string>
#include <vector>

#include <pipeline/pipeline.hpp>

#include "core/value.hpp"

namespace pipeline::dsl {

struct Document {
  core::Value root;  ///< Every span's line is the number of the step, from 1; 0 for the pipeline.
  std::vector<core::Diagnostic> diagnostics;
};

/// @param program what a function's command begins with; empty: nothing, as ProgramStep has it
Document document_of(const Pipeline& pipeline, const std::string& program = {});

}  // namespace pipeline::dsl

/// @file
/// Converts a pipeline of the DSL to a PipelineSpec.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include <pipeline/pipeline.hpp>
#include <pipeline/spec.hpp>

namespace pipeline::dsl {

/// Returns the absolute folder that the pipeline's code and relative paths refer to.
std::filesystem::path root_of(const Pipeline& pipeline);

/// Builds the spec through the reader of pipeline.yaml, which checks it. Throws InputError with all
/// errors, each at the line of its step.
/// @param parameters same as `--param`
/// @param root if empty, root_of()
PipelineSpec build(const Pipeline& pipeline,
                   const std::map<std::string, std::string>& parameters = {},
                   std::filesystem::path root = {});

/// Returns a text that is equal for equal declarations, without reading or checking anything.
std::string identity_of(const Pipeline& pipeline);

}  // namespace pipeline::dsl

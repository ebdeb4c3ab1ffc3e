/// @file
/// A pipeline of the DSL to PipelineSpec.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include <pipeline/pipeline.hpp>
#include <pipeline/spec.hpp>

namespace pipeline::dsl {

/// The absolute folder that the pipeline's code and relative paths are taken from.
std::filesystem::path root_of(const Pipeline& pipeline);

/// Through the reader of pipeline.yaml, which checks it. @param parameters as `--param` @param root
/// empty: root_of() Throws InputError with everything that is wrong, each at the line of its step.
PipelineSpec build(const Pipeline& pipeline,
                   const std::map<std::string, std::string>& parameters = {},
                   std::filesystem::path root = {});

/// Equal for pipelines that are declared alike; without reading or checking anything.
std::string identity_of(const Pipeline& pipeline);

}  // namespace pipeline::dsl

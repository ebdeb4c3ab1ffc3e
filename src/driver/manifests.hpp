/// @file
/// The Kubernetes Jobs of a pipeline's steps, for users to read and for kubectl.
#pragma once

#include <functional>
#include <string_view>

#include <pipeline/spec.hpp>

#include "driver/workspace.hpp"

namespace pipeline::driver {

/// Writes the Jobs of the steps that the options name, as one list that kubectl reads. Values that
/// only a run has are placeholders in capitals. Throws InputError with the errors of all steps,
/// before anything is written.
/// @param write receives the text in several parts
void write_manifests(const Workspace& workspace, const PipelineSpec& pipeline,
                     const std::function<void(std::string_view)>& write);

}  // namespace pipeline::driver

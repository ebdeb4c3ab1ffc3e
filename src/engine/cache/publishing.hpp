/// @file
/// The versions that a step's outputs become under their published names.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <pipeline/spec.hpp>

#include "store/published.hpp"

namespace pipeline::engine {

/// Returns a version for each published name; its number is not set yet.
/// @param run the run that made the outputs
std::vector<std::pair<std::string, store::PublishedVersion>> versions_of(
    const StepSpec& step, const std::string& run, const std::vector<store::OutputRecord>& outputs);

}  // namespace pipeline::engine

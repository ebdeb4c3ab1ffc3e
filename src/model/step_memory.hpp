/// @file
/// The memory that a copy of a step takes, in bytes, by estimate. A few hundred bytes of a file can
/// become a hundred thousand instances, each with copies of all texts of its step.
#pragma once

#include <cstddef>

#include <nlohmann/json_fwd.hpp>

#include <pipeline/spec.hpp>

namespace pipeline::model {

/// Maximum of all steps of a pipeline together, bytes.
constexpr std::size_t max_step_memory = std::size_t{1} << 30;

std::size_t memory_of(const std::map<std::string, Json>& parameters);
std::size_t memory_of(const StepEnvironment& environment);
std::size_t memory_of(const std::vector<SecretSpec>& secrets);
std::size_t memory_of(const std::vector<Json>& values);
std::size_t memory_of(const nlohmann::json& value);
/// Settings are not counted, because the copies of a step share them.
std::size_t memory_of(const StepSpec& step);

}  // namespace pipeline::model

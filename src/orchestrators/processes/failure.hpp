/// @file
/// The failures of steps that are processes, with advice.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "orchestrators/orchestrator.hpp"
#include "orchestrators/processes/process.hpp"

namespace pipeline::orchestrators::processes {

/// Returns a sentence on each setting that steps as processes do not support.
std::vector<std::string> ignored_settings(const Settings& settings,
                                          const Capabilities& capabilities);

/// Returns the failure for a program that was not found, or is not executable.
/// @param path the value of PATH
/// @param code the folder with the step's code
Failure not_found(const std::string& name, const std::string& path,
                  const std::filesystem::path& code);

/// Returns the failure for the end of a process; nothing for success.
/// @param out_of_memory the kernel killed a process of the step for lack of memory
std::optional<Failure> failure_of(const ProcessEnd& end, bool out_of_memory, const StepSpec& step);

/// Adds hints on errors of GPUs in the last output, and on an error at the start of the process.
void explain(Failure& failure, const ProcessEnd& end, const ProcessOptions& process,
             const std::string& last_output, bool has_gpus);

}  // namespace pipeline::orchestrators::processes

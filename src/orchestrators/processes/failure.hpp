/// @file
/// Words for what went wrong with a process of this machine, and advice.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "orchestrators/orchestrator.hpp"
#include "orchestrators/processes/process.hpp"

namespace pipeline::orchestrators::processes {

/// Returns the settings that a process does not support, one sentence each.
std::vector<std::string> ignored_settings(const Settings& settings,
                                          const Capabilities& capabilities);

/// Returns the failure and advice for a program that could not be started.
Failure not_found(const std::string& name, const std::string& path,
                  const std::filesystem::path& code);

/// Returns the failure for the end of a process; nothing for success.
std::optional<Failure> failure_of(const ProcessEnd& end, bool out_of_memory, const StepSpec& step);

/// Adds what the process has printed of GPUs, and what the error at its start means.
void explain(Failure& failure, const ProcessEnd& end, const ProcessOptions& process,
             const std::string& last_output, bool has_gpus);

}  // namespace pipeline::orchestrators::processes

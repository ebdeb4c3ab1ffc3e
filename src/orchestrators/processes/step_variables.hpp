/// @file
/// The environment variables that a step's process gets from the user and from its settings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators::processes {

inline constexpr std::string_view default_path =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Returns the PATH of the step's own settings, else the user's.
std::string path_of(const StepSpec& step);

/// Returns the user's variables that a step gets: those about the user, language, time zone,
/// network access and the paths of programs and libraries. Everything else must be declared, so
/// that a step does not depend on what its cache key does not cover.
StringMap passed_on_variables();

/// Makes CUDA show the process only its reserved GPUs, in the order of their indices. MIG slices
/// are always named by UUID. A step without GPUs sees none, because other steps may hold them,
/// unless it sets the variable itself.
void show_gpus(const std::vector<AssignedGpu>& gpus, GpuIds ids, StringMap& variables);

}  // namespace pipeline::orchestrators::processes

/// @file
/// Checks, before anything is built, that a run can succeed.
#pragma once

#include <vector>

#include "engine/cache/results.hpp"
#include "engine/gpu/gpu_reserver.hpp"
#include "engine/run_context.hpp"

namespace pipeline::engine {

/// Checks the steps by the pipeline and the capabilities of their orchestrators alone, without
/// looking at any machine. Throws InputError if a step uses more than a limit, or has services,
/// nodes or a choice of GPUs that its orchestrator does not support.
/// @param steps those that their conditions rule out are not checked
void check_steps(const RunContext& context, std::vector<const StepSpec*> steps);

/// Checks the requirements of the steps, and fetches data that the lock file lacks, because the
/// steps' keys depend on it. Throws InputError or EnvironmentError if a secret, published artifact
/// or GPU is missing, the orchestrator cannot run a step, or the remote cache is needed and cannot
/// be used.
/// @param all the steps of the run; those that their conditions rule out are not checked
async::Task<> check_run(const RunContext& context, Results& results, GpuReserver& gpus,
                        const std::vector<const StepSpec*>& all);

}  // namespace pipeline::engine

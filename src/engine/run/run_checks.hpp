/// @file
/// Checks before anything is built that a run can succeed.
#pragma once

#include <vector>

#include "engine/cache/results.hpp"
#include "engine/gpu/gpu_pool.hpp"
#include "engine/graph/run_steps.hpp"
#include "engine/run/environments.hpp"

namespace pipeline::engine {

class RunChecks {
 public:
  /// Keeps references to all arguments.
  RunChecks(const Services& services, RunSteps& steps, Environments& environments, Results& results,
            GpuPool& gpus, asio::thread_pool& pool, const EngineOptions& options, EventSink& events,
            core::CancelSource& stop);

  /// Also fetches data that the lock file lacks, because the steps' keys depend on it. Throws
  /// InputError or EnvironmentError if a secret, published artifact or GPU is missing, the
  /// orchestrator cannot run a step, or the remote cache is needed and cannot be used.
  /// @param steps those of the run; what their conditions rule out is not checked
  async::Task<> check(const std::vector<const StepSpec*>& steps);

 private:
  void read_files();
  async::Task<bool> has_all_results();

  const Services& services_;
  RunSteps& steps_;
  Environments& environments_;
  Results& results_;
  GpuPool& gpus_;
  asio::thread_pool& pool_;
  const EngineOptions& options_;
  EventSink& events_;
  core::CancelSource& stop_;
};

}  // namespace pipeline::engine

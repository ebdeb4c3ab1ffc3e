/// @file
/// Samples the GPU usage of an attempt, because NVIDIA's driver keeps no sums.
#pragma once

#include <string>
#include <vector>

#include "async/task.hpp"
#include "gpu/gpu_sums.hpp"
#include "gpu/inventory.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::engine {

class GpuMeter {
 public:
  GpuMeter(const asio::any_io_executor& executor, asio::thread_pool& pool, gpu::Machine& machine,
           const std::vector<orchestrators::AssignedGpu>& gpus);

  /// Samples until stop(): at first ten times a second, later once in five seconds.
  async::Task<> sample();
  void stop();
  /// Returns the usage of the GPUs of which at least one sample was taken.
  std::vector<core::GpuUsage> usage() const;

 private:
  struct Sum {
    std::string uuid;
    gpu::GpuSums sums;
  };
  /// @param time seconds for which the sample stands
  /// @param is_load_known the load that the driver reports is that of this attempt
  void add(Sum& sum, double time, bool is_load_known) const;

  asio::steady_timer timer_;
  asio::thread_pool& pool_;
  gpu::Machine& machine_;
  std::vector<Sum> sums_;
  bool is_over_ = false;
};

}  // namespace pipeline::engine

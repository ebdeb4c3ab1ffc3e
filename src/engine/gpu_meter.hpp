/// @file
/// Samples what an attempt uses of its GPUs: the driver keeps no account of it.
#pragma once

#include <string>
#include <vector>

#include "async/task.hpp"
#include "core/usage.hpp"
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
  /// The GPUs of which at least one sample was taken.
  std::vector<core::GpuUsage> usage() const;

 private:
  struct Sum {
    std::string uuid;
    double time = 0, used = 0;  ///< Bytes are multiplied by their seconds.
    double load_time = 0, load = 0, peak_load = 0;
    std::uint64_t peak_used = 0, memory = 0;
  };
  /// @param time seconds for which the sample stands
  void add(Sum& sum, double time) const;

  asio::steady_timer timer_;
  asio::thread_pool& pool_;
  gpu::Machine& machine_;
  std::vector<Sum> sums_;
  bool is_over_ = false;
};

}  // namespace pipeline::engine

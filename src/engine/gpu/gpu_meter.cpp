#include "engine/gpu/gpu_meter.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "async/on_pool.hpp"
#include "engine/clock.hpp"

namespace pipeline::engine {
namespace {

/// A sample of one GPU takes the driver about ten microseconds.
constexpr std::chrono::milliseconds min_gpu_pause{100}, max_gpu_pause{5000};
/// A pause is the time since the start divided by this.
constexpr int gpu_pause_divisor = 100;
/// The driver's load is that of its last sample period, of 1 s at most (nvmlUtilization_t): before
/// that, it may be the load of a step that had the GPU earlier.
constexpr std::chrono::seconds max_sample_period{1};

}  // namespace

GpuMeter::GpuMeter(const asio::any_io_executor& executor, asio::thread_pool& pool,
                   gpu::Machine& machine, const std::vector<orchestrators::AssignedGpu>& gpus)
    : timer_(executor), pool_(pool), machine_(machine) {
  for (const auto& gpu : gpus) sums_.push_back({gpu.uuid, {}});
}

async::Task<> GpuMeter::sample() {
  const auto start = Clock::now();
  auto last = start - min_gpu_pause;
  const auto take = [this, start, &last] {
    const auto now = Clock::now();
    const std::chrono::duration<double> time = now - std::exchange(last, now);
    const bool is_load_known = now - start >= max_sample_period;
    for (auto& sum : sums_) add(sum, time.count(), is_load_known);
  };
  while (!is_over_) {
    co_await async::on_pool(pool_, take);
    if (is_over_) co_return;
    timer_.expires_after(std::clamp<Clock::duration>((Clock::now() - start) / gpu_pause_divisor,
                                                     min_gpu_pause, max_gpu_pause));
    boost::system::error_code stopped;
    co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, stopped));
  }
}

void GpuMeter::stop() {
  is_over_ = true;
  timer_.cancel();
}

void GpuMeter::add(Sum& sum, double time, bool is_load_known) const {
  if (const auto now = machine_.load(sum.uuid))
    sum.sums.add(time, is_load_known ? now->share : std::nullopt, now->memory_used, now->memory);
}

std::vector<core::GpuUsage> GpuMeter::usage() const {
  std::vector<core::GpuUsage> list;
  for (const auto& [uuid, sums] : sums_)
    if (sums.time > 0) list.push_back(gpu::usage_of(uuid, sums));
  return list;
}

}  // namespace pipeline::engine

#include "engine/gpu_meter.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "async/on_pool.hpp"
#include "engine/clock.hpp"

namespace pipeline::engine {
namespace {

/// A sample of one GPU takes the driver some ten microseconds.
constexpr std::chrono::milliseconds shortest_gpu_pause{100}, longest_gpu_pause{5000};
constexpr int gpu_pause_share = 100;  // Of the time that the attempt has run.

}  // namespace

GpuMeter::GpuMeter(const asio::any_io_executor& executor, asio::thread_pool& pool,
                   gpu::Machine& machine, const std::vector<orchestrators::AssignedGpu>& gpus)
    : timer_(executor), pool_(pool), machine_(machine) {
  for (const auto& gpu : gpus) sums_.push_back({.uuid = gpu.uuid});
}

async::Task<> GpuMeter::sample() {
  const auto start = Clock::now();
  auto last = start - shortest_gpu_pause;
  const auto take = [this, &last] {
    const auto now = Clock::now();
    const std::chrono::duration<double> time = now - std::exchange(last, now);
    for (auto& sum : sums_) add(sum, time.count());
  };
  while (!is_over_) {
    co_await async::on_pool(pool_, take);
    if (is_over_) co_return;
    timer_.expires_after(std::clamp<Clock::duration>((Clock::now() - start) / gpu_pause_share,
                                                     shortest_gpu_pause, longest_gpu_pause));
    boost::system::error_code stopped;
    co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, stopped));
  }
}

void GpuMeter::stop() {
  is_over_ = true;
  timer_.cancel();
}

void GpuMeter::add(Sum& sum, double time) const {
  const auto now = machine_.load(sum.uuid);
  if (!now) return;
  sum.time += time;
  sum.used += time * static_cast<double>(now->memory_used);
  sum.peak_used = std::max<std::uint64_t>(sum.peak_used, now->memory_used);
  sum.memory = now->memory;
  if (!now->share) return;
  sum.load_time += time;
  sum.load += time * *now->share;
  sum.peak_load = std::max(sum.peak_load, *now->share);
}

std::vector<core::GpuUsage> GpuMeter::usage() const {
  std::vector<core::GpuUsage> list;
  for (const auto& sum : sums_) {
    if (sum.time == 0) continue;
    core::GpuUsage used{.uuid = sum.uuid};
    if (sum.load_time > 0) {
      used.mean_load = sum.load / sum.load_time;
      used.peak_load = sum.peak_load;
    }
    used.mean_memory = static_cast<std::uint64_t>(std::llround(sum.used / sum.time));
    used.peak_memory = sum.peak_used;
    used.memory = sum.memory;
    list.push_back(std::move(used));
  }
  return list;
}

}  // namespace pipeline::engine

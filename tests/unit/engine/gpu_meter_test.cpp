#include "engine/gpu/gpu_meter.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "async/joinable_task.hpp"
#include "core/file.hpp"
#include "support/run_task.hpp"

namespace pipeline::engine {
namespace {

class GpuMeterTest : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("PIPE_NVML", NVML_STAND_IN, 1);
    ::setenv("PIPE_NVML_STAND_IN", (folder_.path() / "gpus.json").c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("PIPE_NVML");
    ::unsetenv("PIPE_NVML_STAND_IN");
  }
  /// Returns the usage that an attempt of this length has of the stand-in's GPU.
  core::GpuUsage measure(const std::string& gpu, std::chrono::milliseconds length) {
    core::write_file_atomically(folder_.path() / "gpus.json",
                                R"({"gpus": [{"uuid": "GPU-meter", )" + gpu + "}]}");
    gpu::Machine machine;
    asio::thread_pool pool(1);
    GpuMeter meter(loop_.get_executor(), pool, machine, {{.uuid = "GPU-meter"}});
    test::run_task(loop_, [](GpuMeter& one, std::chrono::milliseconds time) -> async::Task<> {
      const auto executor = co_await asio::this_coro::executor;
      async::JoinableTask sampling(executor, one.sample());
      asio::steady_timer timer(executor, time);
      co_await timer.async_wait(asio::use_awaitable);
      one.stop();
      co_await sampling.join();
    }(meter, length));
    return meter.usage().at(0);
  }

  asio::io_context loop_;
  core::TemporaryFolder folder_;
};

TEST_F(GpuMeterTest, the_load_of_the_step_before_is_not_counted) {
  std::string loads = "100";  // One value for each sample.
  for (int i = 0; i < 100; ++i) loads += ", 0";
  const auto usage =
      measure(R"("load": [)" + loads + R"(], "used_mib": 7)", std::chrono::milliseconds(1400));
  EXPECT_EQ(usage.peak_load, 0.0);
  EXPECT_EQ(usage.mean_load, 0.0);
  EXPECT_EQ(usage.peak_memory, 7U << 20);
}

TEST_F(GpuMeterTest, an_attempt_shorter_than_the_drivers_sample_period_has_memory_and_no_load) {
  const auto usage = measure(R"("load": 100, "used_mib": 7)", std::chrono::milliseconds(50));
  EXPECT_EQ(usage.peak_load, std::nullopt);
  EXPECT_EQ(usage.peak_memory, 7U << 20);
}

}  // namespace
}  // namespace pipeline::engine

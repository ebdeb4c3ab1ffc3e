#include "orchestrators/slurm/job_monitor.hpp"

#include <gtest/gtest.h>

#include "core/file.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

TEST(JobMonitor, is_settled_by_two_callers_at_the_same_time) {
  asio::io_context loop;
  const core::TemporaryFolder events;
  Client client("");
  JobMonitor monitor(client, events.path(), loop.get_executor());
  monitor.watch("job", {"1", "job"}, {});
  monitor.forget("job");
  int settled = 0;
  for (int caller = 0; caller < 2; ++caller)
    asio::co_spawn(loop, monitor.settle(), [&settled](std::exception_ptr) { ++settled; });
  loop.run_for(std::chrono::minutes(1));  // Returns earlier once nothing runs.
  EXPECT_EQ(settled, 2);
  EXPECT_TRUE(monitor.is_settled());
}

}  // namespace
}  // namespace pipeline::orchestrators::slurm

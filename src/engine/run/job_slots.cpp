#include "engine/run/job_slots.hpp"

#include <algorithm>

#include <sys/resource.h>

#include "core/processors.hpp"

namespace pipeline::engine {
namespace {

/// A cluster has its own queue, but each attempt there costs a connection for its log.
constexpr unsigned max_remote_attempts = 100;

}  // namespace

unsigned max_open_files(const PipelineSpec& pipeline, orchestrators::Routes& routes) {
  unsigned open_files = 1;
  for (const auto& step : pipeline.steps)
    open_files = std::max(open_files, routes.capabilities_of(step).open_files);
  return open_files;
}

unsigned max_attempts(unsigned open_files) {
  constexpr rlim_t files_of_run = 48;  // Open besides those of attempts: store, sockets, libraries.
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return max_remote_attempts;
  const auto free = std::max(limit.rlim_cur, files_of_run) - files_of_run;
  return static_cast<unsigned>(std::clamp<rlim_t>(free / open_files, 1, 1 << 20));
}

JobSlots slots_for(unsigned jobs, unsigned open_files) {
  const auto slots = [jobs, max_slots = max_attempts(open_files)](unsigned preset) {
    return async::Semaphore(std::clamp(jobs ? jobs : preset, 1u, max_slots));
  };
  return {.local = slots(core::usable_processors()), .remote = slots(max_remote_attempts)};
}

}  // namespace pipeline::engine

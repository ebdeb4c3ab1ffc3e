#include "orchestrators/docker/container_wait.hpp"

#include <chrono>
#include <exception>

#include "async/retry_policy.hpp"
#include "async/sleep.hpp"
#include "core/log.hpp"

namespace pipeline::orchestrators::docker_engine {

async::Task<> wait_for_end(docker::EngineApi& engine, ContainerWait wait) {
  async::Backoff backoff(engine.limits().retries);
  for (;;) {
    const auto began = std::chrono::steady_clock::now();
    std::exception_ptr lost;
    try {
      co_await engine.wait_container(wait.id, wait.next_exit ? "next-exit" : "not-running",
                                     wait.on_listening, &wait.cancel);
    } catch (const core::EnvironmentError& error) {
      lost = std::current_exception();
      core::log::info(std::string("engine: ") + error.what() + "; the container is looked up");
    }
    if (lost && wait.cancel.level() != core::StopLevel::none) std::rethrow_exception(lost);
    const bool ended = co_await wait.has_ended(wait.next_exit, lost != nullptr);
    if (ended) co_return;
    if (std::chrono::steady_clock::now() - began > engine.limits().retries.max_pause)
      backoff.reset();
    if (lost && backoff.exhausted()) std::rethrow_exception(lost);
    co_await async::sleep(backoff.next(), &wait.cancel);
  }
}

}  // namespace pipeline::orchestrators::docker_engine

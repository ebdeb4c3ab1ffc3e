#include "engine/attempt/shell.hpp"

#include "async/finally.hpp"
#include "core/file.hpp"
#include "engine/attempt/attempt.hpp"
#include "engine/gpu/gpu_reserver.hpp"

namespace pipeline::engine {

async::Task<orchestrators::AttemptResult> open_shell(Services services, ShellRequest options) {
  const auto& step = options.step;
  auto& events = options.events;
  auto& stop = options.stop;
  const auto executor = co_await asio::this_coro::executor;
  asio::thread_pool pool(1);
  async::Semaphore slots(1);
  EngineOptions run;
  run.run_id = options.run_id;
  async::TaskGroup tasks(executor);
  const RunContext shell{services, run, events, stop, pool, executor, tasks};
  GpuReserver gpus(shell, slots);
  DataInputs data(services);
  co_await data.look_up(services.pipeline, options.shared);
  Downloads downloads(services, events, stop);
  const std::vector<const StepSpec*> only{&step};
  co_await data.pins().lock(only, downloads, events, stop);
  std::set<core::Digest> checked;
  WorkFolders folders(options.folder);
  const AttemptContext context{shell, stop, checked, folders, data, downloads};
  AttemptOptions which{options.number, false, "shell"};
  which.shell = std::move(options.request);
  const auto run_shell = [&]() -> async::Task<orchestrators::AttemptResult> {
    co_await gpus.check(only, services.pipeline);
    GpuReservation held;
    const std::set<std::string> none;
    if (gpus.wants(step))
      if (auto reserved = co_await gpus.acquire(step, 0, stop, none)) held = std::move(*reserved);
    auto outcome = co_await run_attempt(context, step, which, options.outputs_of, std::move(held));
    if (outcome.result.cleanup) outcome.result.cleanup();
    co_return std::move(outcome.result);
  };
  const auto clean_up = [&]() -> async::Task<> {
    stop.stop(core::StopLevel::immediate);
    co_await tasks.join();
    core::remove_tree(options.folder);
  };
  co_return co_await async::finally(run_shell(), clean_up);
}

}  // namespace pipeline::engine

#include "engine/attempt/shell.hpp"

#include "async/finally.hpp"
#include "core/file.hpp"
#include "engine/attempt/attempt.hpp"
#include "engine/gpu/gpu_reserver.hpp"
#include "orchestrators/nodes.hpp"

namespace pipeline::engine {

namespace {

/// Returns the variables by which a process of a step with nodes finds the other processes. Empty
/// for a step without nodes.
StringMap rank_variables(const StepShell& options) {
  if (!options.process) return {};
  orchestrators::NodeAddresses addresses;
  addresses.nodes.assign(options.process->nodes, "127.0.0.1");
  addresses.port = orchestrators::free_ports(options.process->ranks);
  orchestrators::AttemptSpec attempt{.step = options.step,
                                     .run_id = options.run_id,
                                     .number = options.number,
                                     .process = options.process};
  attempt.process->addresses = &addresses;
  return orchestrators::node_variables(attempt);
}

/// Reduces the GPUs of the node to those that the process sees.
void keep_own(const StepShell& options, GpuReservation& held) {
  const auto& process = options.process;
  if (!process || options.step.nodes.visible != VisibleGpus::own) return;
  const auto share = held.gpus.size() / process->local_ranks;
  std::vector<orchestrators::AssignedGpu> own;
  for (std::size_t i = 0; i < share; ++i)
    own.push_back(std::move(held.gpus.at(process->local_rank * share + i)));
  held.gpus = std::move(own);
}

}  // namespace

async::Task<orchestrators::AttemptResult> open_shell(Services services, StepShell options) {
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
  co_await data.look_up(services.pipeline, options.remote_cache, options.run_id);
  Downloads downloads(services, events, stop);
  const std::vector<const StepSpec*> only{&step};
  co_await data.pins().lock(only, downloads, events, stop);
  std::set<core::Digest> checked;
  std::vector<std::string> damaged;
  WorkFolders folders(options.folder);
  const AttemptContext context{shell, stop, checked, damaged, folders, data, downloads};
  AttemptOptions attempt{.number = options.number, .joins = false, .log_name = "shell"};
  attempt.shell = std::move(options.request);
  if (options.process) attempt.shell->node = options.process->node;
  attempt.variables = rank_variables(options);
  StepSpec step_of_one_node = step;  // The GPUs of one node are reserved, not those of all.
  if (options.process) step_of_one_node.nodes = {.count = 0};
  const auto run_shell = [&]() -> async::Task<orchestrators::AttemptResult> {
    const std::vector<const StepSpec*> asking{&step_of_one_node};
    co_await gpus.check(asking, services.pipeline);
    GpuReservation held;
    const std::set<std::string> none;
    if (gpus.wants(step_of_one_node))
      if (auto reserved = co_await gpus.acquire(step_of_one_node, 0, stop, none))
        held = std::move(*reserved);
    keep_own(options, held);
    auto outcome =
        co_await run_attempt(context, step, attempt, options.outputs_of, std::move(held));
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

// The part of GpuReserver that checks the requests of a run's steps before anything is built.
#include <algorithm>

#include "async/on_pool.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "engine/gpu/gpu_reserver.hpp"
#include "engine/run/refusal.hpp"
#include "gpu/concurrent_containers.hpp"
#include "gpu/visible.hpp"
#include "model/step_span.hpp"
#include "settings/accelerator.hpp"

namespace pipeline::engine {

/// Returns the requests whose GPUs this process reserves: those of steps on orchestrators that run
/// attempts by themselves. A cluster's scheduler reserves the others. The GPUs can still be another
/// machine's, that of a remote Docker Engine. Throws InputError if they are of several machines.
std::vector<GpuReserver::Request> GpuReserver::requests_of(
    const std::vector<const StepSpec*>& steps, const PipelineSpec& pipeline) const {
  std::vector<Request> requests;
  for (const auto* step : steps) {
    auto request = gpu::request_of(*step);
    const auto& capabilities = routes_.capabilities_of(*step);
    if (!request.wanted() || !capabilities.gpus) continue;
    if (capabilities.on_this_machine) requests.emplace_back(step, std::move(request));
  }
  if (requests.empty()) return requests;
  std::vector<core::Diagnostic> wrong;
  const auto& first = routes_.capabilities_of(*requests.front().first);
  for (const auto& [step, request] : requests)
    if (const auto& other = routes_.capabilities_of(*step);
        other.gpus_of_this_machine != first.gpus_of_this_machine)
      wrong.push_back(
          {"gpu-choice",
           "step '" + requests.front().first->name + "' takes GPUs of " + first.name + ", step '" +
               step->name + "' those of " + other.name +
               ", which are on another machine: a run reserves the GPUs of one machine only",
           model::span_of(*step),
           {},
           "run both on the same machine"});
  refuse(wrong, pipeline);
  return requests;
}

/// Returns the GPUs of the step's machine; nothing if its orchestrator chooses them. Leaves
/// machine_ null if NVML does not read the GPUs here.
async::Task<std::optional<gpu::Inventory>> GpuReserver::inventory_for(const StepSpec& step) {
  const bool is_this_machine = routes_.capabilities_of(step).gpus_of_this_machine;
  gpu::Inventory inventory;
  if (!is_this_machine) machine_ = nullptr;
  if (is_this_machine)
    inventory = co_await async::on_pool(context_.pool, [this] {
      if (!machine_) machine_ = (own_machine_ = std::make_unique<gpu::Machine>()).get();
      return machine_->read();
    });
  if (machine_ && !inventory.unavailable) co_return inventory;
  auto reported = co_await routes_.of(step).gpus(step, context_.events, context_.user_stop);
  if (!machine_ && !reported) co_return std::nullopt;
  if (!reported) co_return inventory;
  if (is_this_machine) gpu::remove_hidden_by_environment(*reported);
  machine_ = nullptr;
  co_return reported;
}

/// If there are several machines, demands that the GPUs of each node are those of one machine.
/// Returns the shortage if the machines do not have so many.
std::optional<gpu::Shortage> GpuReserver::require_whole_nodes(const StepSpec& step,
                                                              gpu::Demand& demand) const {
  std::map<unsigned, unsigned> by_machine;
  for (const auto& unit : units_)
    by_machine[unit.machine] +=
        std::ranges::find(demand.candidates, unit.uuid) != demand.candidates.end() ? 1 : 0;
  if (by_machine.size() < 2 || demand.count == 0) return std::nullopt;
  const auto wanted = std::max<unsigned>(1, step.nodes.count);
  demand.each = std::max(1u, demand.count / wanted);  // There may be fewer GPUs than nodes.
  unsigned nodes = 0;
  std::string counts;
  for (const auto& [machine, count] : by_machine) {
    nodes += count / demand.each;
    const auto& unit = *std::ranges::find(units_, machine, &gpu::Unit::machine);
    counts += (counts.empty() ? "" : ", ") + unit.machine_name + " has " + std::to_string(count);
  }
  if (nodes >= wanted) return std::nullopt;
  return gpu::Shortage{
      "too-many-gpus",
      "asks for " + core::counted(demand.each, "GPU") +
          (wanted > 1 ? " on each of " + std::to_string(wanted) +
                            " nodes, and the machines have them for " + std::to_string(nodes)
                      : ", and no machine has so many"),
      {counts + " of them"},
      ""};
}

/// Adds the step's demand, or the errors in it. Throws EnvironmentError if the machine lacks the
/// requested GPUs.
void GpuReserver::add_demand(const Request& request, const gpu::Inventory& inventory,
                             std::vector<core::Diagnostic>& wrong) {
  const auto* step = request.first;
  auto result = gpu::demand_of(request.second, inventory);
  if (auto* demand = std::get_if<gpu::Demand>(&result)) {
    auto lack = require_whole_nodes(*step, *demand);
    if (!lack) {
      processes_matter_ |= demand->idle;
      demands_.emplace(step->name, std::move(*demand));
      return;
    }
    result = std::move(*lack);
  }
  auto& shortage = std::get<gpu::Shortage>(result);
  const auto message = "step '" + step->name + "' " + shortage.message;
  if (step->nodes.count > 1)
    shortage.notes.push_back("it has " + std::to_string(step->nodes.count) + " nodes with " +
                             core::counted(request.second.count / step->nodes.count, "GPU") +
                             " each");
  if (shortage.of_machine) {
    auto advice = shortage.notes;
    if (!shortage.suggestion.empty()) advice.push_back(shortage.suggestion);
    throw core::EnvironmentError(message, advice);
  }
  wrong.push_back(
      {shortage.code, message, model::span_of(*step), shortage.notes, shortage.suggestion});
}

async::Task<> GpuReserver::check(const std::vector<const StepSpec*>& steps,
                                 const PipelineSpec& pipeline) {
  const auto requests = requests_of(steps, pipeline);
  if (requests.empty()) co_return;
  const auto inventory = co_await inventory_for(*requests.front().first);
  if (!inventory) co_return;
  units_ = gpu::units_of(*inventory);
  std::vector<core::Diagnostic> wrong;
  for (const auto& request : requests) {
    add_demand(request, *inventory, wrong);
    const auto& [step, gpus] = request;
    if (!machine_ && gpus.auto_select)
      wrong.push_back(
          {"gpu-choice",
           "step '" + step->name +
               "' takes only GPUs that no process uses, and the processes of the machine that they "
               "are on cannot be seen from here",
           model::span_of(*step),
           {},
           "leave out `auto_select_gpus`: steps of `pipe` never share a GPU"});
  }
  if (pipeline.reserve_gpus_together) check_together(steps, inventory->owner, wrong);
  refuse(wrong, pipeline);
  for (const auto& unit : units_) processes_matter_ |= unit.mode == gpu::ComputeMode::exclusive;
  if (std::ranges::any_of(demands_, [](const auto& entry) { return entry.second.count > 0; }))
    folder_.emplace();  // A step will reserve GPUs.
}

/// Reports containers of an ECS task that together need more GPUs than there are.
void GpuReserver::check_together(const std::vector<const StepSpec*>& steps,
                                 const std::string& owner,
                                 std::vector<core::Diagnostic>& wrong) const {
  std::vector<gpu::TaskContainer> task;
  for (const auto* step : steps)
    task.push_back({step->name, demand_of(*step).count, {step->after.begin(), step->after.end()}});
  if (auto lack = gpu::shortage_of(task, units_, owner))
    wrong.push_back({lack->shortage.code, lack->shortage.message,
                     model::span_of(*steps[lack->container]), std::move(lack->shortage.notes),
                     lack->shortage.suggestion});
}

}  // namespace pipeline::engine

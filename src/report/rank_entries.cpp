#include "report/rank_entries.hpp"

#include <chrono>

namespace pipeline::report {

void add_ranks(const std::vector<store::TaskRecord>& tasks,
               const std::function<std::size_t(const std::string&)>& position_of,
               nlohmann::json& entry) {
  if (tasks.size() < 2) return;
  for (const auto& task : tasks) {
    const auto& used = task.usage;
    nlohmann::json machine, code, running, cpu, memory;
    if (!task.node.empty()) machine = position_of(task.node);
    if (task.exit_code) code = *task.exit_code;
    if (task.running) running = task.running->count();
    if (used.user)
      cpu = (used.user->count() + used.system.value_or(std::chrono::microseconds()).count()) / 1000;
    if (used.peak_memory) memory = *used.peak_memory;
    entry["ra"].push_back(
        {task.rank, task.node_rank, machine, code, running, cpu, memory, task.gpus});
    if (task.has_failed_first) entry["rf"] = task.rank;
  }
}

}  // namespace pipeline::report

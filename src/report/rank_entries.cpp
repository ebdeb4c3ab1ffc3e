#include "report/rank_entries.hpp"

#include <algorithm>
#include <chrono>
#include <map>

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

std::optional<std::uint64_t> memory_of_node(const store::AttemptRecord& attempt,
                                            const std::vector<store::TaskRecord>& tasks) {
  std::map<unsigned, std::optional<std::uint64_t>> nodes;
  for (const auto& task : tasks) {
    auto& memory = nodes[task.node_rank];
    if (task.usage.peak_memory) memory = memory.value_or(0) + *task.usage.peak_memory;
  }
  if (nodes.size() < 2) return attempt.usage.peak_memory;
  return std::ranges::max_element(nodes, {}, [](const auto& node) { return node.second; })->second;
}

std::optional<unsigned> first_failed_rank(store::Attempts& attempts, const std::string& run,
                                          const std::string& step) {
  const auto list = attempts.list(run, step);
  if (list.empty()) return std::nullopt;
  const auto tasks = attempts.tasks(list.back());
  const auto first = std::ranges::find(tasks, true, &store::TaskRecord::has_failed_first);
  if (tasks.size() < 2 || first == tasks.end()) return std::nullopt;
  return first->rank;
}

}  // namespace pipeline::report

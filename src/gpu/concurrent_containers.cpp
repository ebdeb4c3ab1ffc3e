#include "gpu/concurrent_containers.hpp"

#include <algorithm>
#include <map>

#include "core/text.hpp"

namespace pipeline::gpu {
namespace {

/// Returns `before`: if before[a][b], b starts after the end of a, directly or indirectly.
std::vector<std::vector<bool>> find_order(const std::vector<TaskContainer>& task) {
  const auto count = task.size();
  std::map<std::string, std::size_t> indices;
  for (std::size_t i = 0; i < count; ++i) indices.emplace(task[i].name, i);
  std::vector<std::vector<bool>> before(count, std::vector<bool>(count));
  for (std::size_t i = 0; i < count; ++i)
    for (const auto& name : task[i].after)
      if (const auto found = indices.find(name); found != indices.end())
        before[found->second][i] = true;
  // Warshall's algorithm: adds the order through a container in the middle.
  for (std::size_t middle = 0; middle < count; ++middle)
    for (std::size_t a = 0; a < count; ++a)
      for (std::size_t b = 0; before[a][middle] && b < count; ++b)
        if (before[middle][b]) before[a][b] = true;
  return before;
}

}  // namespace

ConcurrentContainers most_gpus_at_once(const std::vector<TaskContainer>& task) {
  const auto before = find_order(task);
  ConcurrentContainers best, group;
  // Decides for container i and those after it whether they join `group`, in each way that the
  // order allows. Ten containers have at most 1024 groups.
  const auto extend = [&](const auto& self, std::size_t i) -> void {
    if (i == task.size()) {
      if (group.gpus > best.gpus) best = group;
      return;
    }
    const bool fits =
        task[i].gpus > 0 && std::ranges::none_of(group.members, [&](std::size_t other) {
          return before[other][i] || before[i][other];
        });
    if (fits) {
      group.members.push_back(i);
      group.gpus += task[i].gpus;
      self(self, i + 1);
      group.members.pop_back();
      group.gpus -= task[i].gpus;
    }
    self(self, i + 1);
  };
  if (task.size() <= max_containers) extend(extend, 0);
  return best;
}

std::string names_of(const std::vector<TaskContainer>& task,
                     const ConcurrentContainers& concurrent) {
  std::string text;
  for (const auto i : concurrent.members) {
    if (!text.empty()) text += i == concurrent.members.back() ? " and " : ", ";
    text += "'" + task[i].name + "'";
  }
  return text;
}

std::optional<TaskShortage> shortage_of(const std::vector<TaskContainer>& task,
                                        const std::vector<Unit>& units, const std::string& owner) {
  const auto group = most_gpus_at_once(task);
  if (group.gpus <= units.size() || group.members.size() < 2) return std::nullopt;
  std::vector<std::string> notes;
  for (const auto i : group.members)
    notes.push_back("'" + task[i].name + "' asks for " + core::counted(task[i].gpus, "GPU"));
  for (const auto& unit : units) notes.push_back(owner + " has " + unit.description());
  return TaskShortage{group.members.back(),
                      {"too-many-gpus",
                       "the containers " + names_of(task, group) +
                           " run at the same time and ask for " + core::counted(group.gpus, "GPU") +
                           " together, and " + owner + " has " + std::to_string(units.size()),
                       std::move(notes),
                       "let one wait for the other's end: `dependsOn` with the condition SUCCESS"}};
}

}  // namespace pipeline::gpu

#include "gpu/together.hpp"

#include <algorithm>
#include <map>

#include "core/text.hpp"

namespace pipeline::gpu {
namespace {

/// Returns `before`: if before[a][b], b starts after the end of a, directly or indirectly.
std::vector<std::vector<bool>> order_of(const std::vector<TogetherMember>& members) {
  const auto count = members.size();
  std::map<std::string, std::size_t> indices;
  for (std::size_t i = 0; i < count; ++i) indices.emplace(members[i].name, i);
  std::vector<std::vector<bool>> before(count, std::vector<bool>(count));
  for (std::size_t i = 0; i < count; ++i)
    for (const auto& name : members[i].after)
      if (const auto found = indices.find(name); found != indices.end())
        before[found->second][i] = true;
  // Warshall's algorithm: adds what holds through a member in the middle.
  for (std::size_t middle = 0; middle < count; ++middle)
    for (std::size_t a = 0; a < count; ++a)
      for (std::size_t b = 0; before[a][middle] && b < count; ++b)
        if (before[middle][b]) before[a][b] = true;
  return before;
}

}  // namespace

Group largest_group(const std::vector<TogetherMember>& members) {
  const auto before = order_of(members);
  Group best, group;
  // Decides for the member i and those after it whether they join `group`, in each way that the
  // order allows. Ten members have at most 1024 groups.
  const auto extend = [&](const auto& self, std::size_t i) -> void {
    if (i == members.size()) {
      if (group.gpus > best.gpus) best = group;
      return;
    }
    const bool fits =
        members[i].gpus > 0 && std::ranges::none_of(group.members, [&](std::size_t other) {
          return before[other][i] || before[i][other];
        });
    if (fits) {
      group.members.push_back(i);
      group.gpus += members[i].gpus;
      self(self, i + 1);
      group.members.pop_back();
      group.gpus -= members[i].gpus;
    }
    self(self, i + 1);
  };
  if (members.size() <= max_containers) extend(extend, 0);
  return best;
}

std::optional<TogetherShortage> shortage_together(const std::vector<TogetherMember>& members,
                                                  const std::vector<Unit>& units,
                                                  const std::string& owner) {
  const auto group = largest_group(members);
  if (group.gpus <= units.size() || group.members.size() < 2) return std::nullopt;
  std::vector<std::string> notes;
  for (const auto i : group.members)
    notes.push_back("'" + members[i].name + "' asks for " + counted_gpus(members[i].gpus));
  for (const auto& unit : units) notes.push_back(owner + " has " + unit.description());
  return TogetherShortage{
      group.members.back(),
      {"too-many-gpus",
       "the containers " + names_of(members, group) + " run at the same time and ask for " +
           counted_gpus(group.gpus) + " together, and " + owner + " has " +
           std::to_string(units.size()),
       std::move(notes), "let one wait for the other's end: `dependsOn` with the condition SUCCESS",
       false}};
}

std::string counted_gpus(std::size_t count) { return core::counted(count, "GPU"); }

std::string names_of(const std::vector<TogetherMember>& members, const Group& group) {
  std::string text;
  for (const auto i : group.members) {
    if (!text.empty()) text += i == group.members.back() ? " and " : ", ";
    text += "'" + members[i].name + "'";
  }
  return text;
}

}  // namespace pipeline::gpu

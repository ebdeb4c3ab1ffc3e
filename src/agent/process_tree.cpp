#include "agent/process_tree.hpp"

#include <algorithm>

namespace pipeline::agent {

std::vector<pid_t> descendants_of(pid_t ancestor, std::vector<ProcessParent> all) {
  std::ranges::sort(all, {}, &ProcessParent::parent);
  std::vector<pid_t> found{ancestor};
  for (std::size_t next = 0; next < found.size(); ++next)
    for (const auto& child : std::ranges::equal_range(all, found[next], {}, &ProcessParent::parent))
      if (child.pid != ancestor) found.push_back(child.pid);
  found.erase(found.begin());
  std::ranges::sort(found);
  return found;
}

}  // namespace pipeline::agent

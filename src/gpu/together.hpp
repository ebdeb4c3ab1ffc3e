/// @file
/// The GPUs that the containers of one ECS task hold at the same time. All containers run together,
/// except that a container may wait for the end of another.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gpu/choose.hpp"

namespace pipeline::gpu {

/// Maximum number of containers in a task: a quota of ECS.
inline constexpr std::size_t max_containers = 10;

/// A container of the task.
struct TogetherMember {
  std::string name;
  unsigned gpus = 0;
  std::vector<std::string> after;  ///< The containers whose end this one waits for.
};

/// Containers that run at the same time.
struct Group {
  std::vector<std::size_t> members;  ///< Indices of the members that hold GPUs, in order.
  unsigned gpus = 0;
};

/// Returns the members that may run at the same time and together hold the most GPUs; an empty
/// group for more than max_containers.
Group largest_group(const std::vector<TogetherMember>& members);

/// The reason why the containers can never run together on a machine.
struct TogetherShortage {
  std::size_t member;  ///< Index of the last member of the group that is too large.
  Shortage shortage;
};

/// Returns the reason if members that run at the same time ask for more than the machine's units.
/// Unlike steps of a pipeline, containers of a task may wait for each other, so that one which
/// waits for GPUs could block all.
/// @param owner words for the machine, as an Inventory has them
std::optional<TogetherShortage> shortage_together(const std::vector<TogetherMember>& members,
                                                  const std::vector<Unit>& units,
                                                  const std::string& owner = "this machine");

/// Returns `1 GPU`, `2 GPUs`.
std::string counted_gpus(std::size_t count);
/// Returns the names of the group's members: `'a' and 'b'`, or `'a', 'b' and 'c'`.
std::string names_of(const std::vector<TogetherMember>& members, const Group& group);

}  // namespace pipeline::gpu

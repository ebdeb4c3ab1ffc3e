/// @file
/// The containers of one ECS task that run at the same time, and the GPUs that they hold together.
/// All containers run at the same time, except that a container may wait for the end of another.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gpu/choose.hpp"

namespace pipeline::gpu {

/// Maximum number of containers in a task: a quota of ECS.
inline constexpr std::size_t max_containers = 10;

struct TaskContainer {
  std::string name;
  unsigned gpus = 0;
  std::vector<std::string> after;  ///< The containers whose end this one waits for.
};

/// Containers that run at the same time.
struct ConcurrentContainers {
  std::vector<std::size_t> members;  ///< Indices of the containers that hold GPUs, in order.
  unsigned gpus = 0;
};

/// Returns the containers that may run at the same time and together hold the most GPUs; none for a
/// task of more than max_containers.
ConcurrentContainers most_gpus_at_once(const std::vector<TaskContainer>& task);

/// Returns the names of the members: `'a' and 'b'`, or `'a', 'b' and 'c'`.
std::string names_of(const std::vector<TaskContainer>& task,
                     const ConcurrentContainers& concurrent);

/// The reason why the containers of a task can never run on a machine.
struct TaskShortage {
  std::size_t container;  ///< Index of the last container that runs at the same time as others.
  Shortage shortage;
};

/// Returns the reason if containers that run at the same time ask for more than the machine's
/// units. Unlike steps of a pipeline, containers of a task may wait for each other, so that one
/// which waits for GPUs could block all.
/// @param owner words for the machine, as an Inventory has them
std::optional<TaskShortage> shortage_of(const std::vector<TaskContainer>& task,
                                        const std::vector<Unit>& units, const std::string& owner);

}  // namespace pipeline::gpu

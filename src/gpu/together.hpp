/// @file
/// Containers of one task hold their GPUs at the same time, unless one waits for another's end.
#pragma once

#include <string>
#include <vector>

namespace pipeline::gpu {

/// Of a task: one of ECS's quotas.
inline constexpr std::size_t most_containers = 10;

struct Member {
  std::string name;
  unsigned gpus = 0;
  std::vector<std::string> after;  ///< It starts when these have ended.
};

struct Group {
  std::vector<std::size_t> members;  ///< In their order; only such as hold GPUs.
  unsigned gpus = 0;
};

/// Those that may run at the same time and hold the most GPUs together; none of more than
/// most_containers.
Group largest_group(const std::vector<Member>& members);

/// `1 GPU`, `2 GPUs`
std::string gpus(std::size_t count);
/// `'a' and 'b'`, `'a', 'b' and 'c'`
std::string names_of(const std::vector<Member>& members, const Group& group);

}  // namespace pipeline::gpu

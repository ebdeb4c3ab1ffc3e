/// @file
/// The variables and numbers by which a process of a step with nodes finds the others.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "orchestrators/attempts.hpp"

namespace pipeline::orchestrators {

/// Returns the variables by which torchrun, PyTorch, Lightning, JAX and TensorFlow find the other
/// processes, and PIPE_NODE_*. docs/nodes.md has them in a table.
StringMap node_variables(const AttemptSpec& attempt);

/// Returns `2 nodes with 4 processes each: 8 processes and 8 GPUs in all`, for a step with nodes.
std::string nodes_text(const StepSpec& step);

/// Returns the first of `count` consecutive ports of this machine that nothing listens on. The
/// kernel gives none of them to connections (ip_local_port_range), and no other call in this
/// process within a minute returns one of them. Throws EnvironmentError if there are none.
unsigned free_ports(unsigned count);

/// Returns `[3] ` before a line of rank 3 in a step's log.
std::string rank_prefix(unsigned rank);
/// Returns the rank and the line without rank_prefix(); nothing for a line without one.
std::optional<std::pair<unsigned, std::string_view>> rank_of_line(std::string_view line);

}  // namespace pipeline::orchestrators

/// @file
/// The nodes of a step with many processes, which start and end together.
#pragma once

#include <cstdint>

namespace pipeline {

/// Which processes must succeed for a step with nodes to succeed.
enum class NodesDone : std::uint8_t {
  all,    ///< All processes. The default.
  first,  ///< The process of rank 0, whose success ends the others.
};

/// Which GPUs of its node a process sees.
enum class VisibleGpus : std::uint8_t {
  node,  ///< All GPUs of the node: the process takes that of its local rank. The default.
  own,   ///< An equal share of the node's GPUs.
};

/// The value of NodesSpec::processes for one process on each GPU of a node.
inline constexpr std::uint16_t per_gpu = 0;

/// The nodes that a step has at the same time, and the processes on each node. The struct is small,
/// because every StepSpec has one.
struct NodesSpec {
  std::uint16_t count = 1;      ///< 0: a step without nodes, as StepSpec begins; one process.
  std::uint16_t processes = 1;  ///< Number of processes on each node, or `per_gpu`.
  NodesDone done = NodesDone::all;
  VisibleGpus visible = VisibleGpus::node;
  /// How often all processes of an attempt begin again in place after one has failed, under another
  /// rendezvous id. Not part of the step's key.
  std::uint8_t restarts = 0;
  explicit operator bool() const { return count > 0; }
};

}  // namespace pipeline

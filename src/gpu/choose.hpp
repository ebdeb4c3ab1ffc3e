/// @file
/// Matches a step's request for GPUs with the machine's devices. Whether a device is free is not
/// considered here.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "gpu/inventory.hpp"
#include "gpu/queue.hpp"
#include "settings/accelerator.hpp"

namespace pipeline {
struct StepSpec;
}

namespace pipeline::gpu {

/// A device that a step can reserve: a GPU, or a slice of a GPU that is divided by MIG.
struct Unit {
  std::string uuid;
  unsigned machine = 0;           ///< As Device::machine.
  unsigned index = 0;             ///< Index of the GPU.
  std::optional<unsigned> slice;  ///< Index of the slice on the GPU.
  std::string model, profile;     ///< profile: MIG profile of a slice, else empty.
  Bytes memory = 0;
  settings::ComputeCapability capability;
  ComputeMode mode = ComputeMode::shared;
  std::vector<Process> processes;
  std::string machine_name = {};  ///< If attempts run on several machines; else empty.

  std::string name() const;  ///< `GPU 1`, `MIG device 0:2`, `GPU 1 of ssh://gpu2`.
  /// `GPU 1: Tesla V100-SXM2-16GB, 15.8GiB, compute capability 7.0 (GPU-1f3a...)`.
  std::string description() const;
};

/// Returns all usable units, in the order of their indices.
std::vector<Unit> units_of(const Inventory& inventory);

/// The reason why a request can never be satisfied on this machine.
struct Shortage {
  std::string code;  ///< Same as Diagnostic::code.
  std::string message;
  std::vector<std::string> notes;
  std::string suggestion;
  /// The machine has no driver or no usable GPU; the user's file can be correct.
  bool of_machine = false;
};

/// Returns the step's request, with the GPUs of all its nodes: they are reserved together, or none.
settings::GpuRequest request_of(const StepSpec& step);

/// Returns the units that a step with this request may get, and how many of them it needs.
std::variant<Demand, Shortage> demand_of(const settings::GpuRequest& request,
                                         const Inventory& inventory);

}  // namespace pipeline::gpu

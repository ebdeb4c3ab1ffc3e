/// @file
/// From what a step asks for and what the machine has to the devices that it may get; which of them
/// are free is not asked here.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "gpu/inventory.hpp"
#include "gpu/queue.hpp"
#include "settings/accelerator.hpp"

namespace pipeline::gpu {

/// What a step can hold: a GPU, or a slice of one that is divided by MIG.
struct Unit {
  std::string uuid;
  unsigned index = 0;             ///< Of the GPU.
  std::optional<unsigned> slice;  ///< Which of its slices.
  std::string model, profile;     ///< profile: of a slice, else empty.
  Bytes memory = 0;
  settings::ComputeCapability capability;
  ComputeMode mode = ComputeMode::shared;
  std::vector<Process> processes;

  std::string name() const;  ///< `GPU 1`, `MIG device 0:2`
  std::string description()
      const;  ///< `GPU 1: Tesla V100-SXM2-16GB, 15.8GiB, compute capability 7.0`
};

/// All that can be used, in the order of their indices.
std::vector<Unit> units_of(const Inventory& inventory);

/// Why a request can never be met on this machine.
struct Shortage {
  std::string code;  ///< As Diagnostic::code.
  std::string message;
  std::vector<std::string> notes;
  std::string suggestion;
  bool of_machine = false;  ///< No driver, or no GPU at all: the user's file may be right.
};

std::variant<Demand, Shortage> demand_of(const settings::GpuRequest& request,
                                         const Inventory& inventory);

}  // namespace pipeline::gpu

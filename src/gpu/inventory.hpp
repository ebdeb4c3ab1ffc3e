/// @file
/// The NVIDIA GPUs of this machine, as reported by the driver's management library (NVML).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pipeline/settings.hpp>

#include "settings/accelerator.hpp"

namespace pipeline::gpu {

/// Number of processes that may use a GPU at a time (`nvidia-smi --compute-mode`).
enum class ComputeMode { shared, exclusive, prohibited };
std::string_view to_string(ComputeMode mode);

/// A process that uses a GPU. From inside a container its name and user can be unknown.
struct Process {
  std::int64_t pid = 0;
  Bytes memory = 0;       ///< Memory used on the GPU; 0 if unknown.
  bool graphics = false;  ///< The process draws on the GPU (NVML's graphics processes).
  std::string name, user;
};

/// A slice of a GPU that is divided by MIG.
struct Slice {
  std::string uuid;  ///< `MIG-...`.
  unsigned index = 0;
  std::string profile;  ///< For example `1g.10gb`.
  Bytes memory = 0;
  std::vector<Process> processes;
};

/// A GPU.
struct Device {
  unsigned machine = 0;  ///< Number of its machine, if attempts run on several machines.
  unsigned index = 0;    ///< In PCI bus order, as in nvidia-smi.
  std::string uuid, model, bus_id;
  Bytes memory = 0, memory_used = 0;
  std::optional<double> load;  ///< Share of the last second in which it computed, 0 to 1.
  settings::ComputeCapability capability;
  ComputeMode mode = ComputeMode::shared;
  bool mig = false;  ///< The GPU is divided; only its slices can be used.
  std::vector<Slice> slices;
  std::vector<Process> processes;
  std::string trouble;  ///< The reason why it cannot be used, such as `GPU is lost`; other members
                        ///< are then mostly empty.
};

/// The reason why GPUs cannot be listed, and advice.
struct Unavailable {
  std::string reason;
  std::vector<std::string> advice;
};

/// The GPUs of a machine, or of the machines on which a run's attempts run.
struct Inventory {
  std::string driver;  ///< For example `535.183.01`.
  std::string cuda;    ///< The newest CUDA that the driver supports, such as `12.2`.
  std::vector<Device> devices;
  /// A message if CUDA_VISIBLE_DEVICES hides some GPUs; otherwise empty.
  std::string hidden_notice;
  std::optional<Unavailable> unavailable;
  /// Names of the machines by Device::machine, if attempts run on several machines; else empty.
  std::vector<std::string> machines = {};
  /// Name of the machine for messages, if attempts run on one machine: `this machine`, or `the
  /// engine's machine`.
  std::string owner = "this machine";
};

/// The current use of a GPU or a MIG slice.
struct Load {
  std::optional<double> share;  ///< As Device::load.
  Bytes memory = 0, memory_used = 0;
};

/// NVML, loaded and initialised once, which can take seconds without nvidia-persistenced. Each
/// read() queries the devices again, from any thread, and returns those that CUDA_VISIBLE_DEVICES
/// does not hide. $PIPE_NVML names another library than the driver's. Throws nothing: errors are in
/// the Inventory.
class Machine {
 public:
  Machine();
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  Inventory read();
  /// Returns nothing for a UUID that this machine does not have, or a GPU that does not answer.
  std::optional<Load> load(const std::string& uuid);

 private:
  struct Nvml;
  std::unique_ptr<Nvml> nvml_;
  std::mutex reading_;
  std::optional<Unavailable> unavailable_;
};

}  // namespace pipeline::gpu

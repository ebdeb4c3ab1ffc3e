/// @file
/// The NVIDIA GPUs of this machine, as the driver's management library (NVML) shows them.
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

/// Who may use a GPU at a time: `nvidia-smi --compute-mode`.
enum class ComputeMode { shared, exclusive, prohibited };
std::string_view to_string(ComputeMode mode);

/// A process that occupies a GPU. Seen from a container its name and user may be unknown.
struct Process {
  std::int64_t pid = 0;
  Bytes memory = 0;  ///< Of the GPU; 0: unknown.
  bool graphics = false;
  std::string name, user;
};

/// A slice of a GPU that has been divided by MIG.
struct Slice {
  std::string uuid;  ///< `MIG-...`
  unsigned index = 0;
  std::string profile;  ///< `1g.10gb`
  Bytes memory = 0;
  std::vector<Process> processes;
};

struct Device {
  unsigned index = 0;  ///< In PCI bus order, as nvidia-smi counts.
  std::string uuid, model, bus_id;
  Bytes memory = 0, memory_used = 0;
  settings::ComputeCapability capability;
  ComputeMode mode = ComputeMode::shared;
  bool mig = false;  ///< Divided: only its slices can be used.
  std::vector<Slice> slices;
  std::vector<Process> processes;
  std::string
      trouble;  ///< Why it cannot be used, such as `GPU is lost`; then little else is known.
};

/// Why nothing is known of GPUs, and what to do about it.
struct Unavailable {
  std::string reason;
  std::vector<std::string> advice;
};

struct Inventory {
  std::string driver;  ///< `535.183.01`
  std::string cuda;    ///< The newest CUDA that the driver can run: `12.2`.
  std::vector<Device> devices;
  std::string narrowed;  ///< That CUDA_VISIBLE_DEVICES hides some, in words; empty: it does not.
  std::optional<Unavailable> unavailable;
};

/// NVML in use: loaded and initialised once, which without nvidia-persistenced may take seconds;
/// each read() looks anew, from any thread, and shows what CUDA_VISIBLE_DEVICES lets CUDA show.
/// $PIPE_NVML names another library than the driver's. Throws nothing: what goes wrong is in the
/// Inventory.
class Machine {
 public:
  Machine();
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  Inventory read();

 private:
  struct Nvml;
  std::unique_ptr<Nvml> nvml_;
  std::mutex reading_;
  std::optional<Unavailable> unavailable_;
};

}  // namespace pipeline::gpu

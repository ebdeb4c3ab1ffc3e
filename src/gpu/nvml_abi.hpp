/// @file
/// The part of NVML's C interface that is used here, declared again so that no NVIDIA header is
/// needed to build. Source: the NVML API Reference. When a function's meaning changes, the library
/// keeps the old symbol and gives the new one a suffix `_v2`, `_v3`.
#pragma once

namespace pipeline::gpu::nvml {

using Return = int;
using Handle = struct Opaque*;

constexpr Return success = 0, not_supported = 3, no_permission = 4, insufficient_size = 7,
                 driver_not_loaded = 9, function_not_found = 13, version_mismatch = 18;

struct Memory {
  unsigned long long total, free, used;  // Memory that the driver reserves counts as used.
};
struct MemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
/// NVML_STRUCT_VERSION(Memory, 2), which the caller writes into the struct.
constexpr unsigned memory_version = sizeof(MemoryV2) | 2U << 24;

struct Utilization {  // Percent of the last sample period, between 1/6 s and 1 s.
  unsigned gpu, memory;
};

struct PciInfo {  // nvmlPciInfo_v3
  char legacy_bus_id[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};

/// Used by `nvmlDeviceGet...RunningProcesses` without suffix.
struct ProcessV1 {
  unsigned pid;
  unsigned long long memory;
};
/// Used by the functions with the suffixes `_v2` and `_v3`.
struct ProcessV2 {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};

constexpr unsigned long long memory_unknown = ~0ULL;

}  // namespace pipeline::gpu::nvml

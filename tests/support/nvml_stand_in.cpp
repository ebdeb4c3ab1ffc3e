/// @file
/// A stand-in for NVIDIA's libnvidia-ml: the functions that pipe calls, answered from the JSON file
/// that PIPE_NVML_STAND_IN names. If there is no such variable, there are four idle GPUs, with the
/// UUIDs that the stand-in for the container runtime has. PIPE_NVML names this library to pipe.
/// Compiled with NVML_STAND_IN_OLD, the library has only the symbols of NVML's first version. If
/// PIPE_NVML_STAND_IN_LOG names a file, each nvmlInit() adds a line to that file.
///
/// The JSON file, in which every key is optional but a GPU's "uuid":
///   {"driver": "535.183.01", "cuda": 12020, "error": 0,
///    "gpus": 2 or
///      [{"uuid": "GPU-1", "model": "A100", "memory_mib": 40960, "used_mib": 0,
///        "reserved_mib": 600,
///        "load": 80 or [0, 40, 80] for one call after the other,
///        "capability": [8, 0], "mode": 0, "lost": false,
///        "processes": [{"pid": 4242, "memory_mib": 9000, "graphics": false}],
///        "mig": [{"uuid": "MIG-1", "profile": "1g.5gb", "memory_mib": 4864}]}]}
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "gpu/nvml_abi.hpp"

namespace {

using nlohmann::json;
using namespace pipeline::gpu::nvml;

/// A GPU, or a MIG slice of one. A Handle is a Node's address.
struct Node {
  json data;
  bool is_slice = false;
  std::vector<std::unique_ptr<Node>> slices;
};

json config;
std::vector<std::unique_ptr<Node>> nodes;
std::vector<std::vector<std::unique_ptr<Node>>> earlier;  // Handles that callers may still have.

/// Reads the JSON file again, because a test may change it while pipe runs.
void load() {
  config = json::object();
  if (const char* path = std::getenv("PIPE_NVML_STAND_IN"))
    config = json::parse(std::ifstream(path));
  auto gpus = config.value("gpus", json(4));
  if (gpus.is_number()) {
    const int count = gpus;
    gpus = json::array();
    for (int i = 0; i < count; ++i)
      gpus.push_back({{"uuid", "GPU-00000000-0000-4000-8000-00000000000" + std::to_string(i)}});
  }
  earlier.push_back(std::move(nodes));
  nodes.clear();
  for (auto& gpu : gpus) {
    auto node = std::make_unique<Node>(Node{gpu, false, {}});
    for (auto& slice : gpu.value("mig", json::array()))
      node->slices.push_back(std::make_unique<Node>(Node{slice, true, {}}));
    nodes.push_back(std::move(node));
  }
}

constexpr Return not_found = 6, gpu_is_lost = 15, argument_version_mismatch = 25;  // As in nvml.h.

Node& node_of(Handle handle) { return *reinterpret_cast<Node*>(handle); }

Return put(char* buffer, unsigned size, const std::string& text) {
  if (text.size() >= size) return insufficient_size;
  std::memcpy(buffer, text.c_str(), text.size() + 1);
  return success;
}

template <class Entry>
Return processes(Handle device, unsigned* count, Entry* entries, bool graphics) {
  unsigned found = 0;
  const auto list = node_of(device).data.value("processes", json::array());
  for (auto& process : list) {
    if (process.value("graphics", false) != graphics) continue;
    if (found < *count)
      entries[found] =
          Entry{process.at("pid").get<unsigned>(), process.value("memory_mib", 0ULL) << 20};
    ++found;
  }
  const bool fits = found <= *count;
  *count = found;
  return fits ? success : insufficient_size;
}

}  // namespace

extern "C" {

#define EXPORT __attribute__((visibility("default")))
#ifdef NVML_STAND_IN_OLD
#define V2(name) EXPORT Return name
#define V3(name) EXPORT Return name
#else
#define V2(name) EXPORT Return name##_v2
#define V3(name) EXPORT Return name##_v3
#endif

V2(nvmlInit)() {
  load();
  if (const char* log = std::getenv("PIPE_NVML_STAND_IN_LOG"))
    std::ofstream(log, std::ios::app) << "nvmlInit\n";
  return config.value("error", success);
}
EXPORT Return nvmlShutdown() { return success; }
EXPORT const char* nvmlErrorString(Return code) {
  switch (code) {
    case driver_not_loaded: return "Driver Not Loaded";
    case version_mismatch: return "Driver/library version mismatch";
    case no_permission: return "Insufficient Permissions";
    case gpu_is_lost: return "GPU is lost";
    default: return "Unknown Error";
  }
}
EXPORT Return nvmlSystemGetDriverVersion(char* buffer, unsigned size) {
  return put(buffer, size, config.value("driver", "535.183.01"));
}
V2(nvmlSystemGetCudaDriverVersion)(int* version) {
  *version = config.value("cuda", 12020);
  return success;
}
V2(nvmlDeviceGetCount)(unsigned* count) {
  load();
  *count = static_cast<unsigned>(nodes.size());
  return success;
}
V2(nvmlDeviceGetHandleByIndex)(unsigned index, Handle* handle) {
  if (nodes.at(index)->data.value("lost", false)) return gpu_is_lost;
  *handle = reinterpret_cast<Handle>(nodes.at(index).get());
  return success;
}
EXPORT Return nvmlDeviceGetUUID(Handle device, char* buffer, unsigned size) {
  return put(buffer, size, node_of(device).data.at("uuid"));
}
EXPORT Return nvmlDeviceGetName(Handle device, char* buffer, unsigned size) {
  const auto& data = node_of(device).data;
  const auto model = data.value("model", "Tesla V100-SXM2-16GB");
  return put(buffer, size,
             node_of(device).is_slice ? model + " MIG " + data.value("profile", "1g.5gb") : model);
}
EXPORT Return nvmlDeviceGetMemoryInfo(Handle device, Memory* memory) {
  const auto& data = node_of(device).data;
  memory->total = data.value("memory_mib", 16160ULL) << 20;
  memory->used = (data.value("used_mib", 0ULL) + data.value("reserved_mib", 0ULL)) << 20;
  memory->free = memory->total - memory->used;
  return success;
}
#ifndef NVML_STAND_IN_OLD
EXPORT Return nvmlDeviceGetMemoryInfo_v2(Handle device, MemoryV2* memory) {
  if (memory->version != memory_version) return argument_version_mismatch;
  Memory whole{};
  nvmlDeviceGetMemoryInfo(device, &whole);
  const auto reserved = node_of(device).data.value("reserved_mib", 0ULL) << 20;
  *memory = {memory_version, whole.total, reserved, whole.free, whole.used - reserved};
  return success;
}
#endif
EXPORT Return nvmlDeviceGetHandleByUUID(const char* uuid, Handle* handle) {
  load();
  for (const auto& node : nodes) {
    if (node->data.at("uuid") == uuid) *handle = reinterpret_cast<Handle>(node.get());
    for (const auto& slice : node->slices)
      if (slice->data.at("uuid") == uuid) *handle = reinterpret_cast<Handle>(slice.get());
  }
  return *handle ? success : not_found;
}
EXPORT Return nvmlDeviceGetUtilizationRates(Handle device, Utilization* now) {
  const auto& node = node_of(device);
  if (node.is_slice || node.data.contains("mig")) return not_supported;
  static std::map<std::string, std::size_t> calls;
  const auto load = node.data.value("load", json(0));
  now->gpu = load.is_array() ? load.at(calls[node.data.at("uuid")]++ % load.size()) : load;
  return success;
}
EXPORT Return nvmlDeviceGetPciInfo_v3(Handle device, PciInfo* place) {
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].get() == &node_of(device))
      put(place->bus_id, sizeof place->bus_id, "00000000:0" + std::to_string(i) + ":00.0");
  return success;
}
EXPORT Return nvmlDeviceGetCudaComputeCapability(Handle device, int* major, int* minor) {
  const auto capability = node_of(device).data.value("capability", std::vector<int>{7, 0});
  *major = capability.at(0), *minor = capability.at(1);
  return success;
}
EXPORT Return nvmlDeviceGetComputeMode(Handle device, unsigned* mode) {
  *mode = node_of(device).data.value("mode", 0U);
  return success;
}
EXPORT Return nvmlDeviceGetMigMode(Handle device, unsigned* current, unsigned* pending) {
  if (!node_of(device).data.contains("mig")) return not_supported;
  *current = *pending = 1;
  return success;
}
EXPORT Return nvmlDeviceGetMaxMigDeviceCount(Handle device, unsigned* count) {
  *count = node_of(device).slices.empty() ? 0 : 7;  // An A100 can be split into seven.
  return success;
}
EXPORT Return nvmlDeviceGetMigDeviceHandleByIndex(Handle device, unsigned index, Handle* slice) {
  auto& slices = node_of(device).slices;
  if (index >= slices.size()) return not_found;
  *slice = reinterpret_cast<Handle>(slices[index].get());
  return success;
}
#ifdef NVML_STAND_IN_OLD
using Process = ProcessV1;
#else
using Process = ProcessV2;
#endif
V3(nvmlDeviceGetComputeRunningProcesses)(Handle device, unsigned* count, Process* entries) {
  return processes(device, count, entries, false);
}
V3(nvmlDeviceGetGraphicsRunningProcesses)(Handle device, unsigned* count, Process* entries) {
  return processes(device, count, entries, true);
}

}  // extern "C"

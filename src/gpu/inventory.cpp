#include "gpu/inventory.hpp"

#include <dlfcn.h>
#include <pwd.h>
#include <sys/stat.h>

#include <cstdlib>

#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "gpu/nvml_abi.hpp"
#include "gpu/visible.hpp"

namespace pipeline::gpu {
namespace {

using namespace nvml;

/// The driver's library, and its path under WSL.
constexpr const char* library_names[] = {"libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1"};

const std::vector<std::string>& install_advice() {
  static const std::vector<std::string> advice{
      "if it has an NVIDIA GPU, install the driver; on Debian: apt-get install nvidia-driver",
      "in a container, start it with GPUs: docker run --gpus all"};
  return advice;
}

/// Fills in the name and user of a process from /proc, as far as they are visible here.
void fill_in(Process& process) {
  const auto folder = "/proc/" + std::to_string(process.pid);
  try {
    process.name = core::read_file(folder + "/comm");
    while (!process.name.empty() && process.name.back() == '\n') process.name.pop_back();
    process.name = core::printable(process.name);  // Every process can choose its own name.
  } catch (const core::EnvironmentError&) {  // The process has ended, or runs in another container.
  }
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0) return;
  const auto* user = ::getpwuid(info.st_uid);
  process.user = user ? user->pw_name : std::to_string(info.st_uid);
}

/// Returns `1g.5gb` for `NVIDIA A100-SXM4-40GB MIG 1g.5gb`.
std::string profile_of(const std::string& name) {
  const auto at = name.rfind("MIG ");
  return at == std::string::npos ? name : name.substr(at + 4);
}

}  // namespace

std::string_view to_string(ComputeMode mode) {
  switch (mode) {
    case ComputeMode::shared: return "default";
    case ComputeMode::exclusive: return "exclusive";
    case ComputeMode::prohibited: return "prohibited";
  }
  return "";
}

struct Machine::Nvml {
  void* library = nullptr;

  /// Returns the newest version of a function that this driver has.
  template <class Function>
  Function* find(std::initializer_list<const char*> symbols) const {
    for (const auto* symbol : symbols)
      if (auto* address = ::dlsym(library, symbol)) return reinterpret_cast<Function*>(address);
    return nullptr;
  }

  std::string error_text(Return code) const {
    auto* function = find<const char*(Return)>({"nvmlErrorString"});
    const char* text = function ? function(code) : nullptr;
    return text ? text : "NVML error " + std::to_string(code);
  }

  /// Returns the text that a function writes into a buffer; empty if it fails.
  template <class... Before>
  std::string text(const char* symbol, Before... before) const {
    char buffer[128] = {};
    auto* function = find<Return(Before..., char*, unsigned)>({symbol});
    if (!function || function(before..., buffer, sizeof buffer - 1) != success) return {};
    return buffer;
  }

  unsigned number(const char* symbol, Handle device) const {
    unsigned value = 0;
    auto* function = find<Return(Handle, unsigned*)>({symbol});
    return function && function(device, &value) == success ? value : 0;
  }

  template <class Entry>
  void processes(const char* symbol, Handle device, bool graphics,
                 std::vector<Process>& found) const {
    auto* function = find<Return(Handle, unsigned*, Entry*)>({symbol});
    if (!function) return;
    std::vector<Entry> entries(16);
    for (int tries = 0; tries < 5; ++tries) {
      auto count = static_cast<unsigned>(entries.size());
      const auto code = function(device, &count, entries.data());
      if (code == insufficient_size) {
        entries.resize(count + 16);  // More processes may have started meanwhile.
        continue;
      }
      if (code != success) return;
      for (unsigned i = 0; i < count; ++i) {
        Process process{.pid = entries[i].pid,
                        .memory = entries[i].memory == memory_unknown ? 0 : entries[i].memory,
                        .graphics = graphics};
        fill_in(process);
        found.push_back(std::move(process));
      }
      return;
    }
  }

  std::vector<Process> processes(Handle device) const {
    std::vector<Process> found;
    const auto add = [&](const std::string& base, bool graphics) {
      for (const auto* suffix : {"_v3", "_v2"})
        if (::dlsym(library, (base + suffix).c_str()))
          return processes<ProcessV2>((base + suffix).c_str(), device, graphics, found);
      processes<ProcessV1>(base.c_str(), device, graphics, found);
    };
    add("nvmlDeviceGetComputeRunningProcesses", false);
    add("nvmlDeviceGetGraphicsRunningProcesses", true);
    return found;
  }

  /// Returns the device's memory as nvidia-smi counts it: without memory that the driver reserves
  /// (0.6 GiB on an H200).
  Bytes memory(Handle device, Bytes* used = nullptr) const {
    MemoryV2 info{.version = memory_version};
    auto* function = find<Return(Handle, MemoryV2*)>({"nvmlDeviceGetMemoryInfo_v2"});
    if (!function || function(device, &info) != success) return memory_v1(device, used);
    // NVML's references differ on whether the field `used` includes what is reserved.
    if (used) *used = info.total - std::min(info.total, info.free + info.reserved);
    return info.total;
  }
  /// Returns the device's memory by the function that drivers before 510 have.
  Bytes memory_v1(Handle device, Bytes* used) const {
    Memory info{};
    auto* function = find<Return(Handle, Memory*)>({"nvmlDeviceGetMemoryInfo"});
    if (!function || function(device, &info) != success) return 0;
    if (used) *used = info.used;
    return info.total;
  }

  std::optional<double> share(Handle device) const {
    Utilization now{};
    auto* function = find<Return(Handle, Utilization*)>({"nvmlDeviceGetUtilizationRates"});
    if (!function || function(device, &now) != success) return std::nullopt;
    constexpr double percent = 100;
    return now.gpu / percent;
  }

  std::vector<Slice> slices(Handle device) const {
    std::vector<Slice> found;
    auto* handle_of =
        find<Return(Handle, unsigned, Handle*)>({"nvmlDeviceGetMigDeviceHandleByIndex"});
    const unsigned max_slices = number("nvmlDeviceGetMaxMigDeviceCount", device);
    for (unsigned i = 0; handle_of && i < max_slices; ++i) {
      Handle slice = nullptr;
      if (handle_of(device, i, &slice) != success) continue;  // No slice has this index.
      found.push_back({.uuid = text("nvmlDeviceGetUUID", slice),
                       .index = i,
                       .profile = profile_of(text("nvmlDeviceGetName", slice)),
                       .memory = memory(slice),
                       .processes = processes(slice)});
    }
    return found;
  }

  Device device(unsigned index) const {
    Device device{.index = index};
    Handle handle = nullptr;
    auto* handle_of = find<Return(unsigned, Handle*)>(
        {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"});
    const auto code = handle_of ? handle_of(index, &handle) : function_not_found;
    if (code != success) {
      device.trouble = error_text(code);
      return device;
    }
    device.uuid = text("nvmlDeviceGetUUID", handle);
    device.model = text("nvmlDeviceGetName", handle);
    device.memory = memory(handle, &device.memory_used);
    device.load = share(handle);
    PciInfo pci{};
    if (auto* function = find<Return(Handle, PciInfo*)>({"nvmlDeviceGetPciInfo_v3"});
        function && function(handle, &pci) == success)
      device.bus_id = pci.bus_id;
    int major = 0, minor = 0;
    if (auto* function = find<Return(Handle, int*, int*)>({"nvmlDeviceGetCudaComputeCapability"});
        function && function(handle, &major, &minor) == success)
      device.capability = {static_cast<unsigned>(major), static_cast<unsigned>(minor)};
    // The value 1, exclusive to a thread, was removed in CUDA 8.
    const unsigned mode = number("nvmlDeviceGetComputeMode", handle);
    device.mode = mode == 2 ? ComputeMode::prohibited
                  : mode    ? ComputeMode::exclusive
                            : ComputeMode::shared;
    unsigned mig = 0, mig_after_reset = 0;
    if (auto* function = find<Return(Handle, unsigned*, unsigned*)>({"nvmlDeviceGetMigMode"});
        function && function(handle, &mig, &mig_after_reset) == success)
      device.mig = mig != 0;
    if (device.mig) device.slices = slices(handle);
    device.processes = processes(handle);
    if (device.uuid.empty()) device.trouble = "the driver reports no UUID for it";
    return device;
  }
};

Machine::Machine() {
  const char* replacement = std::getenv("PIPE_NVML");
  void* library = nullptr;
  if (replacement && *replacement) {
    library = ::dlopen(replacement, RTLD_LAZY | RTLD_LOCAL);
    if (!library)
      unavailable_ =
          Unavailable{std::string("cannot load the library that PIPE_NVML names: ") + ::dlerror(),
                      {"unset PIPE_NVML"}};
  } else {
    for (const auto* name : library_names)
      if (!library) library = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (!library)
      unavailable_ = Unavailable{
          "this machine has no NVIDIA driver (there is no libnvidia-ml.so.1)", install_advice()};
  }
  if (!library) return;
  auto nvml = std::make_unique<Nvml>(Nvml{library});
  auto* initialise = nvml->find<Return()>({"nvmlInit_v2", "nvmlInit"});
  if (!initialise) {
    unavailable_ = Unavailable{"the library libnvidia-ml is not NVML: it has no nvmlInit",
                               {"reinstall the driver"}};
    return;
  }
  const auto code = initialise();
  if (code == success) {
    nvml_ = std::move(nvml);
    return;
  }
  const auto reason = "NVIDIA's driver does not answer: " + nvml->error_text(code);
  switch (code) {
    case driver_not_loaded:
      unavailable_ =
          Unavailable{reason,
                      {"load it: modprobe nvidia; if that fails, `dmesg | grep -i nvrm` says why",
                       "after an update of the kernel the driver's module must be rebuilt "
                       "(dkms), or the machine restarted"}};
      break;
    case version_mismatch:
      unavailable_ = Unavailable{
          reason,
          {"the driver was updated and the kernel still runs the old one: restart the machine"}};
      break;
    case no_permission:
      unavailable_ = Unavailable{reason,
                                 {"your user may not open /dev/nvidiactl: ask to be put into the "
                                  "group that owns it (often `video`)"}};
      break;
    default:
      unavailable_ = Unavailable{reason, {"`nvidia-smi` and `dmesg | grep -i nvrm` may say more"}};
  }
}

Machine::~Machine() {
  if (!nvml_) return;
  if (auto* shut_down = nvml_->find<Return()>({"nvmlShutdown"})) shut_down();
}

Inventory Machine::read() {
  const std::lock_guard one_at_a_time(reading_);
  Inventory inventory;
  if (unavailable_) {
    inventory.unavailable = unavailable_;
    return inventory;
  }
  inventory.driver = nvml_->text("nvmlSystemGetDriverVersion");
  int cuda = 0;  // 12020 stands for 12.2.
  if (auto* function = nvml_->find<Return(int*)>(
          {"nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"});
      function && function(&cuda) == success)
    inventory.cuda = std::to_string(cuda / 1000) + "." + std::to_string(cuda % 1000 / 10);
  unsigned count = 0;
  auto* counted = nvml_->find<Return(unsigned*)>({"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"});
  if (const auto code = counted ? counted(&count) : function_not_found; code != success) {
    inventory.unavailable =
        Unavailable{"NVIDIA's driver does not list its GPUs: " + nvml_->error_text(code),
                    {"`nvidia-smi` may say more"}};
    return inventory;
  }
  for (unsigned i = 0; i < count; ++i) inventory.devices.push_back(nvml_->device(i));
  remove_hidden_by_environment(inventory);
  return inventory;
}

std::optional<Load> Machine::load(const std::string& uuid) {
  const std::lock_guard one_at_a_time(reading_);
  if (!nvml_) return std::nullopt;
  Handle handle = nullptr;
  auto* handle_of = nvml_->find<Return(const char*, Handle*)>({"nvmlDeviceGetHandleByUUID"});
  if (!handle_of || handle_of(uuid.c_str(), &handle) != success) return std::nullopt;
  Load now{.share = nvml_->share(handle)};
  now.memory = nvml_->memory(handle, &now.memory_used);
  return now.memory > 0 ? std::optional(now) : std::nullopt;
}

}  // namespace pipeline::gpu

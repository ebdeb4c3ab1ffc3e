/// @file
/// Reads what nvidia-smi prints on another machine: any text can be read, and only GPUs that are
/// divided by MIG have slices.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "gpu/choose.hpp"
#include "gpu/smi.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pipeline;
  const auto inventory = gpu::read_smi(std::string_view(reinterpret_cast<const char*>(data), size));
  for (const auto& device : inventory.devices)
    if (!device.slices.empty() && !device.mig) __builtin_trap();
  for (const auto& unit : gpu::units_of(inventory)) unit.description();
  return 0;
}

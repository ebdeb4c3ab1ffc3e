/// @file
/// Fuzzes the reader of `host.yaml`, the attributes of a machine: each error has a message.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/diagnostic.hpp"
#include "spec/host_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pipeline;
  try {
    spec::parse_host(std::string_view(reinterpret_cast<const char*>(data), size), "host.yaml");
  } catch (const core::InputError& error) {
    if (std::string_view(error.what()).empty()) __builtin_trap();
  }
  return 0;
}

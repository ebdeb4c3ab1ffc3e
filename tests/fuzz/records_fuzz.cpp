/// @file
/// Fuzzes records in a bucket: all names in an accepted record may become paths.
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "core/identifier.hpp"
#include "remote_cache/record.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto record = pipeline::remote_cache::read_record(
        std::string_view(reinterpret_cast<const char*>(data), size));
    if (!record) return 0;
    for (const auto& output : record->outputs)
      for (const auto& name : {output.record.name, output.record.file_name})
        if (!pipeline::core::is_name(name)) __builtin_trap();
  } catch (const std::invalid_argument&) {
  }
  return 0;
}

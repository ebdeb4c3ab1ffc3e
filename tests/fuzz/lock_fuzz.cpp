/// @file
/// pipeline.lock, which people edit and machines merge: what is accepted is written as the same
/// again, and no line for an installer is an option or has a second line in it.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/diagnostic.hpp"
#include "lock/text.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pipeline;
  lock::LockContent content;
  try {
    content = lock::parse(std::string_view(reinterpret_cast<const char*>(data), size), "lock");
  } catch (const core::InputError& error) {
    if (std::string_view(error.what()).empty()) __builtin_trap();
    return 0;
  }
  for (const auto& environment : content.environments) {
    lock::digest(environment);
    for (const auto& line : lock::install_lines(environment))
      if (line.starts_with('-') || line.find('\n') != line.npos || line.find('\0') != line.npos)
        __builtin_trap();
  }
  const auto text = lock::to_text(content);
  if (lock::to_text(lock::parse(text, "lock")) != text) __builtin_trap();
  return 0;
}

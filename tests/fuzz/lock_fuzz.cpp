/// @file
/// Fuzzes pipeline.lock, which people edit and git merges: an accepted text is written as the same
/// again, and no line for an installer is an option or has a second line in it.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/diagnostic.hpp"
#include "lockfile/text.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pipeline;
  lockfile::LockContent content;
  try {
    content = lockfile::parse(std::string_view(reinterpret_cast<const char*>(data), size), "lock");
  } catch (const core::InputError& error) {
    if (std::string_view(error.what()).empty()) __builtin_trap();
    return 0;
  }
  for (const auto& environment : content.environments) {
    lockfile::digest(environment);
    for (const auto& line : lockfile::install_lines(environment))
      if (line.starts_with('-') || line.find('\n') != line.npos || line.find('\0') != line.npos)
        __builtin_trap();
  }
  const auto text = lockfile::to_text(content);
  if (lockfile::to_text(lockfile::parse(text, "lock")) != text) __builtin_trap();
  return 0;
}

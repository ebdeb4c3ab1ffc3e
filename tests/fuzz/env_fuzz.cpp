/// @file
/// Fuzzes the reader of `.env`: accepted lines are variables, and no message has a value.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/diagnostic.hpp"
#include "spec/env_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pipeline;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    for (const auto& [name, value] : spec::parse_env(text, "/work/.env"))
      if (name.empty() || name.find('=') != name.npos || value.find('\0') != value.npos)
        __builtin_trap();
  } catch (const core::InputError& error) {
    if (std::string_view(error.what()).empty()) __builtin_trap();
    // The value `canary`, which the text has only once, behind a `=`, must not be in the message.
    if (text.find("canary") != text.npos &&
        std::string_view(error.what()).find("canary") != std::string_view::npos &&
        text.find("=canary") != text.npos && text.find("canary") == text.find("=canary") + 1 &&
        text.rfind("canary") == text.find("canary"))
      __builtin_trap();
  }
  return 0;
}

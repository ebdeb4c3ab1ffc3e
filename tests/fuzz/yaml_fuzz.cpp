/// @file
/// Any text is a pipeline or an InputError, and an error can be shown.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "code/python_imports.hpp"
#include "code/shell_words.hpp"
#include "core/diagnostic.hpp"
#include "spec/pipeline_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    pipeline::spec::parse(text, "/nowhere/pipeline.yaml");
  } catch (const pipeline::core::InputError& error) {
    if (std::string_view(error.what()).empty()) __builtin_trap();
  }
  pipeline::code::python_imports(text);
  pipeline::code::shell_words(text);
  return 0;
}

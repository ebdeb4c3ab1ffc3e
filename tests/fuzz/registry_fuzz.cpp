/// @file
/// Fuzzes messages of registries, as an engine passes them on, and names of images.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/error.hpp"
#include "docker/engine_errors.hpp"
#include "docker/reference.hpp"
#include "docker/registry_errors.hpp"
#include "docker/transfer_progress.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pipeline::docker;
  const std::string text(reinterpret_cast<const char*>(data), size);
  TransferProgress progress("push the image x", "registry.example", [](std::string_view) {});
  try {
    for (std::string_view rest = text; !rest.empty();
         rest.remove_prefix(std::min<std::size_t>(9, rest.size())))
      progress.feed(rest.substr(0, 9));
    progress.finish();
  } catch (const pipeline::core::EnvironmentError& error) {
    if (std::string_view(error.what()).empty()) __builtin_trap();
  }
  progress.pushed();
  registry_advice(text, "registry.example");
  is_refusal(text);
  push_advice(text, text, "/nowhere/config.json", true);
  advice_for(text);
  if (registry_of(text).empty()) __builtin_trap();
  names_registry(text);
  const auto [name, rest] = split_reference(text);
  if (name.size() > size) __builtin_trap();
  pinned_reference(pipeline::core::parse_json(text), "registry.example/a:1");
  return 0;
}

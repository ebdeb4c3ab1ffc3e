/// @file
/// Fuzzes archives from an engine or a bucket: a tar is unpacked below its target, or refused, and
/// nothing beside the target is changed.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "core/file.hpp"
#include "file_tree/unpack.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pipeline;
  namespace fs = std::filesystem;
  static const core::TemporaryFolder folder;
  const auto target = folder.path() / "target", victim = folder.path() / "victim";
  core::remove_tree(target);
  fs::create_directory(target);
  core::write_file_atomically(victim, "as it was");
  try {
    file_tree::Unpacker unpacker(target, {.bytes = 1 << 20, .entries = 1000});
    std::string_view text(reinterpret_cast<const char*>(data), size);
    for (; !text.empty(); text.remove_prefix(std::min<std::size_t>(300, text.size())))
      unpacker.feed(text.substr(0, 300));
    unpacker.finish();
    for (const auto& entry : fs::recursive_directory_iterator(target)) {
      if (!entry.is_symlink()) continue;
      std::error_code error;
      const auto end = fs::weakly_canonical(entry.path(), error).string();
      if (!error && !end.starts_with(fs::canonical(target).string())) __builtin_trap();
    }
  } catch (const core::EnvironmentError& error) {
    if (std::string_view(error.what()).empty()) __builtin_trap();
  }
  if (core::read_file(victim) != "as it was") __builtin_trap();
  if (std::distance(fs::directory_iterator(folder.path()), {}) != 2) __builtin_trap();
  return 0;
}

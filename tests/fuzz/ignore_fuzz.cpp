/// @file
/// Fuzzes .dockerignore and .gitignore: the input has rules up to a zero byte, and then a path. All
/// paths below a folder that git ignores are ignored, too.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/diagnostic.hpp"
#include "core/ignore.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto end = text.find('\0');
  const auto rules = text.substr(0, end);
  const auto path = end == text.npos ? std::string_view("a/b.py") : text.substr(end + 1);
  if (path.find('\0') != path.npos) return 0;
  try {
    const pipeline::core::DockerIgnore docker(rules);
    docker.ignores(path);
    docker.has_exceptions();
  } catch (const pipeline::core::InputError& error) {
    if (std::string_view(error.what()).empty()) __builtin_trap();
  }
  pipeline::core::GitIgnore git;
  git.add("", rules);
  git.add("a", rules);
  if (!path.empty() && git.ignores(path, true) && !git.ignores(std::string(path) + "/x", false))
    __builtin_trap();
  return 0;
}

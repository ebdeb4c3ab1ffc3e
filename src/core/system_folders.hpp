/// @file
/// The folders of the system: they have its programs, devices and state, but no data of users.
#pragma once

#include <algorithm>
#include <array>
#include <filesystem>

namespace pipeline::core {

/// Names below `/`.
inline constexpr std::array system_folders{"bin",   "dev",    "etc", "gnu", "lib",  "lib32",
                                           "lib64", "libx32", "nix", "opt", "proc", "run",
                                           "sbin",  "snap",   "sys", "usr", "var"};

/// Returns true for `/`, and for a path that is one of these folders or lies in one of them.
/// @param path absolute, without `..`
inline bool is_system_path(const std::filesystem::path& path) {
  const auto relative = path.relative_path();
  return relative.empty() ||
         std::ranges::find(system_folders, relative.begin()->string()) != system_folders.end();
}

}  // namespace pipeline::core

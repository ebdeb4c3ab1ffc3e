/// @file
/// The folders below `/` that have programs, devices and state of the system, but no data of users.
#pragma once

#include <algorithm>
#include <array>
#include <filesystem>

namespace pipeline::core {

inline constexpr std::array system_folders{"bin",   "dev",    "etc", "gnu", "lib",  "lib32",
                                           "lib64", "libx32", "nix", "opt", "proc", "run",
                                           "sbin",  "snap",   "sys", "usr", "var"};

/// @param path absolute
inline bool is_of_system(const std::filesystem::path& path) {
  const auto relative = path.relative_path();
  return relative.empty() ||
         std::ranges::find(system_folders, relative.begin()->string()) != system_folders.end();
}

}  // namespace pipeline::core

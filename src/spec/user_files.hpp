/// @file
/// Paths of the user's own files.
#pragma once

#include <filesystem>
#include <string>

#include "core/user_environment.hpp"

namespace pipeline::spec {

/// Returns the path in the environment variable `variable`, else `pipe/NAME` in $XDG_CONFIG_HOME or
/// ~/.config; empty if there is no home folder.
inline std::filesystem::path configuration_file(const char* variable, const std::string& name) {
  if (const auto file = core::variable(variable); !file.empty()) return file;
  if (const auto folder = core::variable("XDG_CONFIG_HOME"); !folder.empty())
    return std::filesystem::path(folder) / "pipe" / name;
  if (const auto home = core::variable("HOME"); !home.empty())
    return std::filesystem::path(home) / ".config/pipe" / name;
  return {};
}

/// Resolves `~/X` against the user's home, any other path against `folder`.
inline std::filesystem::path user_path(const std::string& text,
                                       const std::filesystem::path& folder) {
  const auto home = text.starts_with("~/") ? core::variable("HOME") : "";
  return (home.empty() ? folder / text : std::filesystem::path(home) / text.substr(2))
      .lexically_normal();
}

}  // namespace pipeline::spec

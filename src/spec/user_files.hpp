/// @file
/// Where files of the user's own are.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace pipeline::spec {

/// Of the caller's environment; null if it is not set, or empty.
inline const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? value : nullptr;
}

/// The file that the variable `own` names, else `pipe/NAME` in $XDG_CONFIG_HOME or ~/.config; empty where nobody has a home.
inline std::filesystem::path configuration_file(const char* own, const std::string& name) {
  if (const char* file = variable(own)) return file;
  if (const char* folder = variable("XDG_CONFIG_HOME")) return std::filesystem::path(folder) / "pipe" / name;
  if (const char* home = variable("HOME")) return std::filesystem::path(home) / ".config/pipe" / name;
  return {};
}

/// `~/X` below the caller's home, anything else relative to `folder`.
inline std::filesystem::path user_path(const std::string& text, const std::filesystem::path& folder) {
  const char* home = text.starts_with("~/") ? std::getenv("HOME") : nullptr;
  return (home ? std::filesystem::path(home) / text.substr(2) : folder / text).lexically_normal();
}

}  // namespace pipeline::spec

/// @file
/// Restricts which files the processes of a step can read, by Landlock.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "core/file.hpp"

namespace pipeline::orchestrators::processes {

/// Files that processes may read: those of the system and the user's configuration and caches, and
/// those that are allowed besides. Everything else, such as the pipeline's folder and other files
/// of the user's, can be written but not read, so that no step depends on what its key does not
/// cover. A process that enters the sandbox stays in it, with all its descendants; it gains no
/// rights by programs with the setuid bit, unless the driver is root.
class Sandbox {
 public:
  /// Returns true if the kernel has a Landlock that can permit renames and links from one folder to
  /// another (since 5.19, and enabled).
  static bool is_available();

  /// @param hidden the pipeline's folder: hidden also where it lies in a folder of the system
  /// @param home   the user's home folder; empty: none
  Sandbox(const std::filesystem::path& hidden, const std::filesystem::path& home);

  /// Makes the file or folder readable, with everything in it. Does nothing if there is none.
  void allow(const std::filesystem::path& path);

  /// The descriptor with which a process enters.
  int descriptor() const { return rules_.get(); }

  /// Restricts this process. Safe between fork and exec. @return 0, or errno
  static int enter(int descriptor);

 private:
  void add_rule(const std::filesystem::path& path, std::uint64_t rights);
  void allow_except(const std::filesystem::path& path, const std::filesystem::path& hidden);
  core::Descriptor rules_;
};

/// Returns the folders that the programs in these folders need: of `X/bin` the whole of `X`, as
/// the libraries of a program are there, but nothing that has the pipeline's folder or the home
/// folder in it.
/// @param path a list in PATH's format
std::vector<std::filesystem::path> program_folders(std::string_view path,
                                                   const std::filesystem::path& pipeline,
                                                   const std::filesystem::path& home);

}  // namespace pipeline::orchestrators::processes

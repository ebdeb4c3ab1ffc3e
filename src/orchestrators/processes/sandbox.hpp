/// @file
/// Restricts which files the processes of a step can read, by Landlock.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "core/file.hpp"

namespace pipeline::orchestrators::processes {

/// The files that a step's processes may read: those of the system, the user's configuration and
/// caches, and those that allow() adds. All other files, such as the pipeline's folder and other
/// files of the user, can be written but not read, so that no step depends on a file that its key
/// does not cover. A process that enters the sandbox stays in it, with all its descendants. Unless
/// the driver is root, programs with the setuid bit give these processes no rights.
class Sandbox {
 public:
  /// Returns true if the kernel has a Landlock that can permit renames and links from one folder to
  /// another (since 5.19, and enabled).
  static bool is_available();

  /// @param hidden the pipeline's folder: hidden also where it lies in a folder of the system
  /// @param home   the user's home folder; empty: none
  Sandbox(const std::filesystem::path& hidden, const std::filesystem::path& home);

  /// Makes the file or folder readable, with everything in it. Does nothing if it does not exist.
  void allow(const std::filesystem::path& path);

  /// Returns the descriptor for enter(); this object owns it.
  int descriptor() const { return rules_.get(); }

  /// Restricts this process. Safe between fork and exec. @return 0, or errno
  static int enter(int descriptor);

 private:
  void add_rule(const std::filesystem::path& path, std::uint64_t rights);
  void allow_except(const std::filesystem::path& path, const std::filesystem::path& hidden);
  core::Descriptor rules_;
};

/// Returns the folders that programs in the folders of `path` read. For `X/bin` that is the whole
/// of `X`, which has the programs' libraries, but only `X/bin` if `X` contains the pipeline's
/// folder or the home folder.
/// @param path a list in PATH's format
std::vector<std::filesystem::path> program_folders(std::string_view path,
                                                   const std::filesystem::path& pipeline,
                                                   const std::filesystem::path& home);

}  // namespace pipeline::orchestrators::processes

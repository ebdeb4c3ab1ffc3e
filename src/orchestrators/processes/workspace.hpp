/// @file
/// The folders that a step's process sees.
#pragma once

#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/file.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators::processes {

/// A folder with a short path, in the system's folder for temporary files. Its users create
/// sockets, whose paths have at most 107 bytes (unix(7)).
class ShortFolder {
 public:
  ShortFolder();
  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  core::TemporaryFolder folder_;
  /// Held while the folder exists, because drivers in other PID namespaces cannot see whether its
  /// creator is alive.
  core::Descriptor lock_;
};

/// A pool of ShortFolders; empty ones are reused.
class ShortFolders {
 public:
  /// Returns an empty folder.
  ShortFolder take();
  /// Empties a folder, and keeps it for take().
  void give_back(ShortFolder folder);

 private:
  std::mutex mutex_;  ///< A workspace with large code is created on another thread.
  std::vector<ShortFolder> spare_;
};

/// The folders of an attempt's process, below its scratch folder: `code`, a private, read-only copy
/// of the step's code; `inputs`, with links to the artifacts; and `tmp`. The code is copied so that
/// no step can change the code of others; files above 16 MiB are links if the file system cannot
/// share blocks between copies. Existing folders of these names without files are reused.
class Workspace {
 public:
  /// Returns the names of the folders that a workspace creates.
  static const std::vector<std::string>& folders();
  Workspace(const AttemptSpec& attempt, ShortFolders& short_folders);
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  const Layout& layout() const { return layout_; }
  /// The value of TMPDIR.
  const std::filesystem::path& temporary() const { return temporary_; }

 private:
  Layout layout_;
  std::filesystem::path scratch_, temporary_;
  ShortFolders& short_folders_;
  std::optional<ShortFolder> short_;
};

/// Returns true if the code is so small that copying it is not worth another thread.
bool is_small(const std::filesystem::path& code);

/// Creates a folder for PATH in which `python` is `program`.
ShortFolder make_python_folder(const std::filesystem::path& program);

/// Removes temporary folders of dead drivers.
void remove_old_temporary_folders();

}  // namespace pipeline::orchestrators::processes

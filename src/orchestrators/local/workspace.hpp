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

namespace pipeline::orchestrators {

/// A folder with a short path, in the system's folder for temporary files.
class ShortFolder {
 public:
  ShortFolder();
  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  core::TemporaryFolder folder_;
  /// Held while the folder exists: drivers in other PID namespaces cannot see that its maker lives.
  core::Descriptor lock_;
};

/// ShortFolders. Those that are left empty serve again.
class ShortFolders {
 public:
  ShortFolder take();
  void give_back(ShortFolder folder);

 private:
  std::mutex mutex_;  ///< A workspace with much code is made on another thread.
  std::vector<ShortFolder> spare_;
};

/// Made below the attempt's scratch folder: `code`, a private, read-only copy, so that no step can
/// change what others share, but of files above 16 MiB, which are links where the file system
/// cannot share blocks; `inputs`, links to the artifacts; and `tmp`. Folders of these names that
/// are there already, without files, are used.
class Workspace {
 public:
  /// The names of the folders that it makes.
  static const std::vector<std::string>& folders();
  Workspace(const Attempt& attempt, ShortFolders& short_folders);
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  const Layout& layout() const { return layout_; }
  /// For TMPDIR.
  const std::filesystem::path& temporary() const { return temporary_; }

 private:
  Layout layout_;
  std::filesystem::path scratch_, temporary_;
  ShortFolders& short_folders_;
  std::optional<ShortFolder> short_;
};

/// True if the code is so little that copying it is not worth another thread.
bool is_small(const std::filesystem::path& code);

/// Makes a folder in which `python` is `program`, for PATH.
ShortFolder make_python_folder(const std::filesystem::path& program);

/// Removes temporary folders of drivers that are dead.
void remove_old_temporary_folders();

}  // namespace pipeline::orchestrators

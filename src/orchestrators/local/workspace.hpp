/// @file
/// The folders that a step's process sees.
#pragma once

#include <filesystem>
#include <optional>

#include "core/file.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators {

/// Made below the attempt's scratch folder: `code`, a private, read-only copy, so that no step can
/// change what others share, but of files above 16 MiB, which are links where the file system
/// cannot share blocks; `inputs`, links to the artifacts; `tmp`; and `bin`, where `python` is if
/// the machine only has `python3`.
class Workspace {
 public:
  explicit Workspace(const Attempt& attempt);
  const Layout& layout() const { return layout_; }
  /// For TMPDIR.
  const std::filesystem::path& temporary() const { return temporary_; }
  /// A folder for PATH in which `name` is `program`.
  std::filesystem::path add_program(const std::string& name,
                                    const std::filesystem::path& program) const;

 private:
  Layout layout_;
  std::filesystem::path scratch_, temporary_;
  std::optional<core::TemporaryFolder> short_;
  core::Descriptor
      short_lock_;  ///< Held while the folder is in use: its maker may have another PID namespace.
};

/// True if the code is so little that copying it is not worth another thread.
bool is_small(const std::filesystem::path& code);

/// Removes temporary folders of drivers that are dead.
void remove_old_temporary_folders();

}  // namespace pipeline::orchestrators

/// @file
/// A temporary folder inside the artifact store.
#pragma once

#include <ctime>
#include <filesystem>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "core/file.hpp"
#include "store/artifact_marks.hpp"

namespace pipeline::store {

/// A folder for an artifact that is being assembled, or for artifacts that are being removed. It is
/// locked while its process lives, and its content is removed at destruction.
class Staging {
 public:
  explicit Staging(const std::filesystem::path& store)
      : folder_((core::make_folders(store / "tmp"), store / "tmp"), "") {
    lock_ = core::Descriptor(::open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (lock_) ::flock(lock_.get(), LOCK_SH);
  }
  std::filesystem::path content() const { return folder_.path() / "content"; }

  /// Removes folders left by killed processes. Recent folders are skipped, because their creators
  /// may not have locked them yet.
  static void remove_abandoned(const std::filesystem::path& store) {
    for (const auto& entry : core::entries_of(store / "tmp")) {
      const auto status = status_of(entry);
      if (!status || status->st_ctim.tv_sec > ::time(nullptr) - 60) continue;
      const core::Descriptor folder(::open(entry.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (folder && ::flock(folder.get(), LOCK_EX | LOCK_NB) == 0) core::remove_tree(entry);
    }
  }

 private:
  core::TemporaryFolder folder_;
  core::Descriptor lock_;
};

}  // namespace pipeline::store

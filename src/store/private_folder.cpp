#include "store/private_folder.hpp"

#include <sys/stat.h>

#include "store/state_lock.hpp"

namespace pipeline::store {

void keep_from_others(const std::filesystem::path& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0 || !is_local_file_system(folder)) return;
  const auto taken = static_cast<mode_t>(S_IRWXO | (status.st_mode & S_IWGRP ? 0 : S_IRWXG));
  // chmod() fails for a folder of another user who shares the state.
  if (status.st_mode & taken) ::chmod(folder.c_str(), status.st_mode & 07777 & ~taken);
}

}  // namespace pipeline::store

#include "orchestrators/docker/open_folders.hpp"

#include <sys/stat.h>

#include <cerrno>

#include "core/error.hpp"
#include "store/private_folder.hpp"

namespace pipeline::orchestrators::docker_engine {
namespace {

namespace fs = std::filesystem;

mode_t mode_of(const fs::path& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0)
    throw core::system_error("cannot look at " + folder.string(), errno);
  return status.st_mode & 07777;
}

/// Gives all users the owner's rights to this user's files in the folder. Among them may be
/// a checkpoint of an earlier attempt, which take_over_files() gave to this user.
void open_content(const fs::path& folder) {
  std::error_code error;
  const auto options = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator entry(folder, options, error), end; !error && entry != end;
       entry.increment(error)) {
    struct stat status {};
    if (::lstat(entry->path().c_str(), &status) != 0 || status.st_uid != ::geteuid() ||
        S_ISLNK(status.st_mode))
      continue;
    const auto own = (status.st_mode & S_IRWXU) >> 6U;
    ::chmod(entry->path().c_str(), status.st_mode | own << 3U | own);
  }
}

}  // namespace

OpenFolders::OpenFolders(const std::vector<fs::path>& folders) {
  for (const auto& folder : folders) {
    if (folder.empty()) continue;
    store::keep_from_others(folder.parent_path());
    before_.emplace_back(folder, mode_of(folder));
    if (::chmod(folder.c_str(), S_IRWXU | S_IRWXG | S_IRWXO) != 0)
      throw core::system_error("cannot open " + folder.string() + " to the step's user", errno);
    if (::geteuid() != 0) open_content(folder);
  }
}

OpenFolders::~OpenFolders() {
  for (const auto& [folder, mode] : before_) ::chmod(folder.c_str(), mode);
}

}  // namespace pipeline::orchestrators::docker_engine

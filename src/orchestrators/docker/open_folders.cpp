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

}  // namespace

OpenFolders::OpenFolders(const std::vector<fs::path>& folders) {
  for (const auto& folder : folders) {
    if (folder.empty()) continue;
    store::keep_from_others(folder.parent_path());
    before_.emplace_back(folder, mode_of(folder));
    if (::chmod(folder.c_str(), S_IRWXU | S_IRWXG | S_IRWXO) != 0)
      throw core::system_error("cannot open " + folder.string() + " to the step's user", errno);
  }
}

OpenFolders::~OpenFolders() {
  for (const auto& [folder, mode] : before_) ::chmod(folder.c_str(), mode);
}

}  // namespace pipeline::orchestrators::docker_engine

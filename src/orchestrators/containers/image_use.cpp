#include "orchestrators/containers/image_use.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <fstream>

#include "orchestrators/cache_folder.hpp"

namespace pipeline::orchestrators::containers {
namespace {

namespace fs = std::filesystem;

/// Returns the path of an empty file for the image, whose time is that of the last use.
fs::path record_of(const std::string& id) {
  return cache_folder() / "images" / id.substr(id.find(':') + 1);
}

}  // namespace

void note_use(const std::string& id) {
  const auto file = record_of(id);
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  std::ofstream(file, std::ios::app).close();
  ::utimensat(AT_FDCWD, file.c_str(), nullptr, 0);
}

std::int64_t last_use(const std::string& id) {
  struct stat status {};
  return ::stat(record_of(id).c_str(), &status) == 0 ? status.st_mtim.tv_sec : 0;
}

void forget_use(const std::string& id) {
  std::error_code error;
  fs::remove(record_of(id), error);
}

}  // namespace pipeline::orchestrators::containers

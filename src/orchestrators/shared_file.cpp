#include "orchestrators/shared_file.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/random_name.hpp"

namespace pipeline::orchestrators {

void write_shared_file(const std::filesystem::path& file, std::string_view content, mode_t mode) {
  std::error_code error;
  if (std::filesystem::exists(file, error)) return;
  core::make_folders(file.parent_path());
  // The driver of another machine may write the same file, and its process may have the same id.
  const auto fresh = file.string() + "." + core::random_name();
  core::write_file_atomically(fresh, content, core::Durability::power);
  try {
    if (::chmod(fresh.c_str(), mode) != 0)
      throw core::system_error("cannot change the mode of " + fresh, errno);
    if (::rename(fresh.c_str(), file.c_str()) != 0)
      throw core::system_error("cannot write " + file.string(), errno);
  } catch (const core::EnvironmentError&) {
    std::filesystem::remove(fresh, error);
    throw;
  }
}

}  // namespace pipeline::orchestrators

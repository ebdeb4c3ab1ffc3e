#include "orchestrators/shared_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "core/error.hpp"
#include "core/file.hpp"

namespace pipeline::orchestrators {

void write_shared_file(const std::filesystem::path& file, std::string_view content, mode_t mode) {
  std::error_code error;
  if (std::filesystem::exists(file, error)) return;
  core::make_folders(file.parent_path());
  const auto fresh = file.string() + "." + std::to_string(::getpid());
  core::write_file_atomically(fresh, content, core::Durability::power);
  if (::chmod(fresh.c_str(), mode) != 0)
    throw core::system_error("cannot change the mode of " + fresh, errno);
  std::filesystem::rename(fresh, file);
}

}  // namespace pipeline::orchestrators

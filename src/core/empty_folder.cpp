#include "core/empty_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "core/file.hpp"

namespace pipeline::core {
namespace {

constexpr mode_t read_only = 0555;

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

}  // namespace

bool empty_folder(const std::filesystem::path& folder, mode_t mode,
                  std::span<const std::string> kept) {
  Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!opened || ::fstat(opened.get(), &status) != 0 || status.st_uid != ::geteuid()) return false;
  const mode_t present_mode = status.st_mode & 07777;
  // This program made the folder with `mode`, and may have made it read-only since. A folder with
  // any other mode was changed by somebody else.
  if (present_mode != mode && present_mode != read_only) return false;
  const std::unique_ptr<DIR, CloseFolder> entries(::fdopendir(opened.get()));
  if (!entries) return false;
  const int descriptor = opened.release();  // closedir() closes the descriptor.
  bool is_changed = false;
  while (const dirent* entry = ::readdir(entries.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == ".." || std::ranges::find(kept, name) != kept.end()) continue;
    if (present_mode != mode && !std::exchange(is_changed, true)) ::fchmod(descriptor, mode);
    if (::unlinkat(descriptor, entry->d_name, 0) != 0) return false;
  }
  return !is_changed || ::fchmod(descriptor, present_mode) == 0;
}

}  // namespace pipeline::core

#include "orchestrators/slurm/squashfs_files.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "orchestrators/cache_folder.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view suffix = ".sqsh";

fs::path record_of(const fs::path& file) { return file.string() + ".digest"; }
fs::path lock_of(const fs::path& file) { return file.string() + ".lock"; }

/// Returns `SIZE TIME`, which differs after each change; empty if there is no file.
std::string version_of(const fs::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return {};
  return std::to_string(status.st_size) + " " + std::to_string(status.st_mtim.tv_sec) + "." +
         std::to_string(status.st_mtim.tv_nsec);
}

void write_record(const fs::path& file, const std::string& digest, const std::string& version) {
  core::write_file_atomically(record_of(file), digest + " " + version + "\n");
}

}  // namespace

fs::path squashfs_folder() { return cache_folder() / "squashfs"; }

bool is_whole_squashfs(const fs::path& file) {
  // The superblock: https://dr-emann.github.io/squashfs/ (magic at 0, bytes used at 40).
  constexpr std::size_t size_offset = 40;
  std::array<unsigned char, size_offset + sizeof(std::uint64_t)> block{};
  const core::Descriptor open_file(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!open_file ||
      ::pread(open_file.get(), block.data(), block.size(), 0) != static_cast<ssize_t>(block.size()))
    return false;
  std::uint64_t bytes = 0;
  for (std::size_t i = block.size(); i-- > size_offset;) bytes = bytes << 8 | block[i];
  std::error_code error;
  const auto size = fs::file_size(file, error);
  return std::string_view(reinterpret_cast<const char*>(block.data()), 4) == "hsqs" && !error &&
         bytes > block.size() && bytes <= size;
}

void record_content(const fs::path& made, const fs::path& name) {
  write_record(name, core::sha256_file(made).hex(), version_of(made));
}

bool has_recorded_content(const fs::path& file) {
  const auto version = version_of(file);
  const auto record = core::read_if_file(record_of(file));
  const std::string text(core::trimmed(record));
  const auto space = text.find(' ');
  if (version.empty() || space == text.npos) return false;
  if (text.substr(space + 1) == version) return true;
  const auto digest = core::sha256_file(file).hex();
  if (digest != text.substr(0, space)) return false;
  write_record(file, digest, version);
  return true;
}

std::vector<fs::path> squashfs_files() {
  auto files = core::entries_of(squashfs_folder());
  std::erase_if(files, [](const fs::path& file) { return file.extension() != suffix; });
  std::ranges::sort(files);
  return files;
}

bool remove_squashfs(const fs::path& file) {
  const core::Descriptor lock(::open(lock_of(file).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return false;
  core::remove_tree(file);
  core::remove_tree(record_of(file));
  core::remove_tree(lock_of(file));
  return true;
}

}  // namespace pipeline::orchestrators::slurm

#include "orchestrators/slurm/squashfs_files.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "orchestrators/cache_folder.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view suffix = ".sqsh", image_suffix = ".image";

fs::path record_of(const fs::path& file) { return file.string() + ".digest"; }
/// Returns the suffix of the names of records under this key.
std::string end_of_record(std::string_view key) {
  constexpr std::size_t digits = 16;
  return "." + core::sha256(key).hex().substr(0, digits) + std::string(image_suffix);
}

fs::path lock_of(const fs::path& file) { return file.string() + ".lock"; }

/// Returns `SIZE TIME`, which changes with the file; empty if there is no file.
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

fs::path squashfs_file(const std::string& identity) {
  // Must be counted up when files are made in another way, so that older ones are not used.
  constexpr const char* format = "1";
  constexpr std::size_t identity_length = 32;
  return squashfs_folder() /
         (identity.substr(0, identity_length) + "-" + format + std::string(suffix));
}

StringMap variables_of_image(const nlohmann::json& image) {
  StringMap variables;
  const auto given = image.value(nlohmann::json::json_pointer("/Config/Env"), nlohmann::json());
  if (!given.is_array()) return variables;
  for (const auto& variable : given) {
    if (!variable.is_string()) continue;
    const auto text = variable.get<std::string>();
    const auto end = text.find('=');
    if (end != text.npos) variables[text.substr(0, end)] = text.substr(end + 1);
  }
  return variables;
}

std::int64_t seconds_of(const std::string& time) {
  std::tm parts{};
  if (std::sscanf(time.c_str(), "%d-%d-%dT%d:%d:%d", &parts.tm_year, &parts.tm_mon, &parts.tm_mday,
                  &parts.tm_hour, &parts.tm_min, &parts.tm_sec) != 6)
    return 0;
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  return std::max<std::int64_t>(0, timegm(&parts));
}

void record_image(const fs::path& file, std::string_view key, const std::string& text) {
  const auto end = end_of_record(key);
  const fs::path record = file.string() + end;
  core::write_file_atomically(record, text);
  for (const auto& other : core::entries_of(squashfs_folder()))
    if (other != record && other.filename().string().ends_with(end)) core::remove_tree(other);
}

std::string recorded_image(std::string_view key) {
  const auto end = end_of_record(key);
  std::error_code error;
  for (const auto& record : core::entries_of(squashfs_folder())) {
    const auto name = record.string();
    if (name.ends_with(end) && fs::exists(name.substr(0, name.size() - end.size()), error))
      return core::read_if_file(record);
  }
  return {};
}

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
  const auto begin = file.filename().string() + ".";
  for (const auto& other : core::entries_of(squashfs_folder())) {
    const auto name = other.filename().string();
    if (name.starts_with(begin) && name.ends_with(image_suffix)) core::remove_tree(other);
  }
  core::remove_tree(lock_of(file));
  return true;
}

}  // namespace pipeline::orchestrators::slurm

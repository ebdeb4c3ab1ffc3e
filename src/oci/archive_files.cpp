#include "oci/archive_files.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/file.hpp"
#include "file_tree/tar_reader.hpp"

namespace pipeline::oci {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t block_size = 512, max_entry_name = 4096, skipped_at_once = 64 * 1024;
constexpr std::uint64_t max_archive_entries = 100'000;
constexpr unsigned max_archive_links = 40;

std::string normal(const fs::path& name) {
  auto text = name.lexically_normal().generic_string();
  return text.starts_with('/') ? text.substr(1) : text;
}

core::Descriptor open_archive(const fs::path& file) {
  core::Descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!opened) throw core::system_error("cannot read " + file.string(), errno);
  return opened;
}

std::uint64_t size_of(const fs::path& file) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  if (error) throw core::system_error("cannot read " + file.string(), error.value());
  return size;
}

std::string read_at(int file, std::uint64_t offset, std::size_t most, const fs::path& name) {
  std::string bytes(most, '\0');
  std::size_t done = 0;
  while (done < most) {
    const auto count =
        ::pread(file, bytes.data() + done, most - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw core::system_error("cannot read " + name.string(), errno);
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  bytes.resize(done);
  return bytes;
}

[[noreturn]] void refuse_archive(const std::string& why) {
  throw core::EnvironmentError(why, {"copy or save the archive again"});
}

/// Refuses a compressed archive, which only `docker load` accepts: its contents cannot be read
/// where they lie.
void check_unpacked(std::string_view begin) {
  using namespace std::string_view_literals;
  constexpr std::array<std::pair<std::string_view, const char*>, 4> kinds{
      {{"\x1f\x8b"sv, "gunzip"},
       {"\x28\xb5\x2f\xfd"sv, "unzstd"},
       {"\xfd\x37zXZ"sv, "unxz"},
       {"BZh"sv, "bunzip2"}}};
  for (const auto& [magic, program] : kinds)
    if (begin.starts_with(magic))
      throw core::EnvironmentError("it is compressed as a whole",
                                   {"unpack it first, by " + std::string(program)});
}

}  // namespace

std::string read_slice(const Slice& slice, std::uint64_t begin, std::size_t most) {
  const auto file = open_archive(slice.file);
  const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(most, slice.size - begin));
  auto bytes = read_at(file.get(), slice.offset + begin, wanted, slice.file);
  if (bytes.size() != wanted)
    throw core::EnvironmentError(slice.file.string() + " became shorter while it was read");
  return bytes;
}

/// Reads the headers of a tar and notes where each content lies.
class ArchiveFiles::Headers final : public file_tree::TarReader::Sink {
 public:
  explicit Headers(ArchiveFiles& files) : files_(files) {}
  void read();

 private:
  void begin(const file_tree::TarReader::Entry& entry) override;
  void content(std::string_view) override {}
  void end() override {}

  ArchiveFiles& files_;
  std::uint64_t position_ = 0;  ///< Offset of the byte after the header.
  std::uint64_t left_ = 0;      ///< Bytes of content that follow, with their padding.
};

void ArchiveFiles::Headers::read() {
  const auto& path = files_.path_;
  const auto file = open_archive(path);
  const auto size = size_of(path);
  check_unpacked(read_at(file.get(), 0, block_size, path));
  file_tree::TarLimits limits;
  limits.entries = max_archive_entries;
  file_tree::TarReader reader(*this, limits);
  const std::string zeros(skipped_at_once, '\0');
  try {
    while (position_ < size) {
      const auto block = read_at(file.get(), position_, block_size, path);
      position_ += block.size();
      reader.feed(block);
      if (left_ > size - position_)
        refuse_archive("it ends in the middle of a file: it was cut short");
      position_ += left_;
      while (left_ > 0) {  // The reader only counts the content, so zeros stand for it.
        const auto count = std::min<std::uint64_t>(left_, zeros.size());
        reader.feed(std::string_view(zeros).substr(0, static_cast<std::size_t>(count)));
        left_ -= count;
      }
    }
    reader.finish();
  } catch (const file_tree::ArchiveError&) {
    refuse_archive("it is not a whole tar archive");
  }
}

void ArchiveFiles::Headers::begin(const file_tree::TarReader::Entry& entry) {
  if (entry.name.size() > max_entry_name || entry.linked.size() > max_entry_name)
    refuse_archive("a name in it is longer than 4,096 bytes");
  left_ = 0;
  if (entry.size > 0) left_ = (entry.size + block_size - 1) / block_size * block_size;
  const auto name = normal(entry.name);
  files_.files_.erase(name);
  files_.links_.erase(name);
  // The types of a tar: 0 and 7 are files, 1 is a hard link, 2 is a symbolic link.
  if (entry.type == '0' || entry.type == '7')
    files_.files_[name] = Slice{files_.path_, position_, entry.size};
  if (entry.type == '1') files_.links_[name] = normal(entry.linked);
  if (entry.type == '2') files_.links_[name] = normal(fs::path(name).parent_path() / entry.linked);
}

ArchiveFiles::ArchiveFiles(fs::path path, bool is_folder)
    : path_(std::move(path)), is_folder_(is_folder) {
  std::error_code error;
  if (is_folder ? !fs::is_directory(path_, error) : !fs::is_regular_file(path_, error))
    throw core::EnvironmentError(std::string("there is no such ") +
                                 (is_folder ? "folder" : "file"));
  if (!is_folder_) Headers(*this).read();
}

std::optional<Slice> ArchiveFiles::find(std::string name) const {
  std::error_code error;
  if (is_folder_) {
    const auto file = path_ / name;
    if (!fs::is_regular_file(file, error)) return std::nullopt;
    return Slice{file, 0, size_of(file)};
  }
  name = normal(name);
  for (unsigned links = 0; links < max_archive_links; ++links) {
    if (const auto found = files_.find(name); found != files_.end()) return found->second;
    const auto link = links_.find(name);
    if (link == links_.end()) return std::nullopt;
    name = link->second;
  }
  return std::nullopt;
}

}  // namespace pipeline::oci

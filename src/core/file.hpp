/// @file
/// Whole files and folders: read, replaced, made, removed. Every failure is an EnvironmentError
/// that names the path.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace pipeline::core {

/// The whole content.
std::string read_file(const std::filesystem::path& path);

/// The content of a file that a step or another user may have put there, or nothing: if it is not
/// there, is no plain file (no link is followed, and a pipe is not waited for), or is longer than
/// `most` bytes, however it grows meanwhile.
std::optional<std::string> read_untrusted_file(const std::filesystem::path& path, std::size_t most);

/// Writes all bytes to the open file. @param path for the message of the EnvironmentError
void write_fully(int descriptor, std::string_view bytes, const std::filesystem::path& path);

/// Whether a file must survive a power failure, or only a crash of the program.
enum class Durability { process, power };

/// Replaces or makes the file as a whole: whoever reads it sees the old content or the new, never a
/// part. Its folder must be there.
void write_file_atomically(const std::filesystem::path& path, std::string_view content,
                           Durability durability = Durability::process);

/// Makes the folder and those above it that are missing.
void make_folders(const std::filesystem::path& path);

/// Removes a file or a folder with all that is in it, also below folders without write permission;
/// follows no link. Nothing there: nothing done.
void remove_tree(const std::filesystem::path& path);

/// A new, empty folder for the caller alone, removed with all that is in it at destruction.
class TemporaryFolder {
 public:
  /// @param parent where to make it; default: the system's folder for temporary files
  explicit TemporaryFolder(const std::filesystem::path& parent = {},
                           std::string_view prefix = "pipe-");
  ~TemporaryFolder();
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  const std::filesystem::path& path() const { return path_; }
  /// Leaves the folder to the caller: it is not removed at destruction.
  std::filesystem::path release();

 private:
  std::filesystem::path path_;
};

/// A file descriptor, closed at destruction.
class Descriptor {
 public:
  explicit Descriptor(int value = -1) : value_(value) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : value_(other.value_) { other.value_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;
  int get() const { return value_; }
  /// Leaves it to the caller, who must close it.
  int release() { return std::exchange(value_, -1); }
  explicit operator bool() const { return value_ >= 0; }

 private:
  int value_;
};

/// Writes all of it; returns 0 or the error number. A reader that has gone away (`| head`) is no
/// error: what is written for it goes nowhere.
int write_all(int descriptor, std::string_view text);

}  // namespace pipeline::core

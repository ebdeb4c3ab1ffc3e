/// @file
/// Whole files and folders: reading, replacing, creating and removing. A failure is an
/// EnvironmentError that names the path, unless the function's comment says otherwise.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pipeline::core {

/// Maximum size of a text that is held in memory as a whole.
inline constexpr std::size_t max_text_bytes = std::size_t{64} << 20;

/// Returns the whole content. Throws EnvironmentError if the file is longer than `max_bytes`, as a
/// device may be.
std::string read_file(const std::filesystem::path& path, std::size_t max_bytes = max_text_bytes);

/// Returns the content of a regular file; empty if there is no regular file at the path.
std::string read_if_file(const std::filesystem::path& path);

/// Returns the content of a file that a step or another user may have written. Returns nothing if
/// the file does not exist, is not a regular file (links are not followed, and pipes are not waited
/// for), or is longer than `max_bytes`, even if it grows meanwhile.
std::optional<std::string> read_untrusted_file(const std::filesystem::path& path,
                                               std::size_t max_bytes);

/// Writes all bytes to the open file. @param path for the message of the EnvironmentError
void write_fully(int descriptor, std::string_view bytes, const std::filesystem::path& path);

/// Waits until the content of a file or folder is on the disk, where the file system supports that.
void sync_to_disk(const std::filesystem::path& path);
/// Waits until all content of this folder's file system is on the disk. Faster than sync_to_disk()
/// for a folder with many files.
void sync_file_system(const std::filesystem::path& folder);

/// Waits until no other process has locked the open file or folder, and locks it (flock(2)). Does
/// nothing if the file system has no locks. Throws EnvironmentError after `timeout`, because any
/// process that can read a folder can lock it for ever, and Stopped after stop_reading().
void lock_exclusively(int descriptor, const std::filesystem::path& path,
                      std::chrono::milliseconds timeout = std::chrono::seconds(30));

/// The events that a written file survives: the end of the process, or also a power failure. After
/// a power failure, a file of `process` may have its name and size, but zeros as content.
enum class Durability { process, power };

/// Creates or replaces the file as a whole: readers see the old or the new content, never a part.
/// The folder must exist.
void write_file_atomically(const std::filesystem::path& path, std::string_view content,
                           Durability durability = Durability::process);

/// Writes an output to a path that the user names: writes into a device or a pipe, also through a
/// link; replaces a file as a whole, and keeps a link to it.
void write_named_file(const std::filesystem::path& path, std::string_view content);

/// Creates the folder and its missing parents.
void make_folders(const std::filesystem::path& path);

/// Returns the paths of the entries directly in the folder; none if the folder is missing, cannot
/// be read, or is a link. Callers remove the entries, and nothing behind a link must be removed.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder);

/// Removes a file or a folder with everything in it, also below folders without write permission;
/// follows no link. Does nothing if the path does not exist.
void remove_tree(const std::filesystem::path& path);

/// Returns $TMPDIR; `/tmp` if that is unset or not a folder.
std::filesystem::path temporary_folder();

/// A new, empty folder that only the current user may access; removed with its content at
/// destruction.
class TemporaryFolder {
 public:
  /// @param parent where to create it; by default the system's folder for temporary files
  explicit TemporaryFolder(const std::filesystem::path& parent = {},
                           std::string_view prefix = "pipe-");
  ~TemporaryFolder();
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  const std::filesystem::path& path() const { return path_; }
  /// Releases the folder: it is not removed at destruction.
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
  /// Releases the descriptor to the caller, who must close it.
  int release() { return std::exchange(value_, -1); }
  explicit operator bool() const { return value_ >= 0; }

 private:
  int value_;
};

/// Writes the whole text, also to a terminal that another process has made non-blocking; returns 0
/// or the error number. A reader that has closed its end (`| head`) is not an error: the text is
/// dropped.
int write_all(int descriptor, std::string_view text);

}  // namespace pipeline::core

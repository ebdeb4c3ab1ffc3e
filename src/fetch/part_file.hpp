/// @file
/// Incomplete content on disk, received in parts by several connections, with the progress of each,
/// so that a later process can continue.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/file.hpp"

namespace pipeline::fetch {

/// A file that is received as a stream from its beginning or, once it is planned, in parts. A
/// second file beside it, `NAME.parts`, has the progress of the parts.
class PartFile {
 public:
  /// Opens or creates the file. Bytes from an earlier process stay if they are trusted.
  /// @param is_verified the whole content will be compared with a known digest, so that damage by a
  /// crash of the machine is detected; otherwise only parts received since the machine started are
  /// trusted
  PartFile(std::filesystem::path path, bool is_verified);

  /// Takes the lock that keeps other processes from writing to the file. Returns false while
  /// another process has it. Must be called first.
  bool try_lock();
  /// Reads the state that an earlier process has left. Called while the lock is held.
  void load();

  bool is_planned() const { return total_.has_value(); }
  /// Returns the bytes received of a file that is not planned.
  std::uint64_t size() const { return size_; }
  std::uint64_t received() const;
  bool is_complete() const { return total_ && received() == *total_; }
  /// Returns the available bytes of the file system.
  std::uint64_t room() const;
  /// Throws EnvironmentError if the file system has no space for this many more bytes.
  void check_room(std::uint64_t bytes) const;
  /// Plans the parts of content of `total` bytes, of which the first size() have been received.
  /// Throws EnvironmentError if the file system has no space for the content.
  void plan(std::uint64_t total);
  /// Removes all content and the plan.
  void clear();
  /// Removes both files.
  void remove();
  /// Removes the second file, once the content is complete.
  void forget_progress();

  struct Range {
    std::uint64_t begin, end;  ///< `end` is one past the last byte.
  };
  /// Returns a part that is incomplete and that no caller has taken; nothing if there is none.
  std::optional<std::size_t> take();
  /// Returns the missing range of the part; empty if the part is complete.
  Range missing(std::size_t part) const;
  /// Writes the next bytes of a part; bytes beyond its end are ignored.
  void write(std::size_t part, std::string_view bytes);
  /// Writes the next bytes of a file that is not planned.
  void append(std::string_view bytes);
  /// Returns the number of parts.
  std::size_t parts() const { return parts_.size(); }
  /// Returns the part with this byte.
  std::size_t part_of(std::uint64_t byte) const { return byte / part_size_; }

 private:
  struct Part {
    std::uint64_t done = 0;   ///< Bytes that were received.
    std::uint64_t saved = 0;  ///< Bytes that the second file records.
    bool is_taken = false;    ///< take() has returned the part.
  };
  std::uint64_t begin_of(std::size_t part) const { return part * part_size_; }
  std::uint64_t size_of(std::size_t part) const;
  void save_plan();
  void save(std::size_t part);
  std::filesystem::path progress_path() const { return path_.string() + ".parts"; }

  std::filesystem::path path_;
  bool is_verified_;
  core::Descriptor file_, progress_;
  std::uint64_t size_ = 0, part_size_ = 0;
  std::size_t header_size_ = 0;         ///< Bytes of the first line of the second file.
  std::optional<std::uint64_t> total_;  ///< Size of the content; set by plan().
  std::vector<Part> parts_;
};

/// Returns an identifier that changes when the machine starts: bytes written before a crash may not
/// have reached the disk.
std::string boot_id();

/// Returns the size of the parts for content of this size.
std::uint64_t part_size_of(std::uint64_t total);

}  // namespace pipeline::fetch

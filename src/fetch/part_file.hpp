/// @file
/// Incomplete content on disk, received in parts by several connections, and how far each has
/// come. Survives the process, so that a later one continues it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/file.hpp"

namespace pipeline::fetch {

/// A file that is received as a stream from its begin, or, once it is planned, in parts. How far
/// the parts have come is in a second file beside it, `NAME.parts`.
class PartFile {
 public:
  /// Opens or creates the file. What an earlier process has received stays if it is trusted.
  /// @param is_verified the whole content will be compared with a digest that is known, so that
  /// what a crash of the machine may have spoiled is noticed; else only what was received since the
  /// machine started, in parts, is trusted
  PartFile(std::filesystem::path path, bool is_verified);

  /// Takes the lock that keeps other processes from writing to the file. Call it first.
  bool try_lock();
  /// Reads what an earlier process has left; call it with the lock.
  void load();

  bool is_planned() const { return total_.has_value(); }
  /// Bytes that are here from the begin; of a file that is not planned.
  std::uint64_t size() const { return size_; }
  std::uint64_t received() const;
  bool is_complete() const { return total_ && received() == *total_; }
  /// Returns the bytes that the file system has room for.
  std::uint64_t room() const;
  /// Throws EnvironmentError if the file system has no room for so many bytes more.
  void check_room(std::uint64_t bytes) const;
  /// Plans the parts of content of `total` bytes, of which the first size() are here. Throws
  /// EnvironmentError if the file system has no room for it.
  void plan(std::uint64_t total);
  /// Forgets all content and the plan.
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
  /// Returns what the part lacks; empty if it is complete.
  Range missing(std::size_t part) const;
  /// Writes the next bytes of a part; what exceeds it is ignored.
  void write(std::size_t part, std::string_view bytes);
  /// Writes the next bytes of a file that is not planned.
  void append(std::string_view bytes);
  std::size_t parts() const { return parts_.size(); }
  /// Returns the part with this byte.
  std::size_t part_of(std::uint64_t byte) const { return byte / part_size_; }

 private:
  struct Part {
    std::uint64_t done = 0, saved = 0;
    bool is_taken = false;
  };
  std::uint64_t begin_of(std::size_t part) const { return part * part_size_; }
  std::uint64_t size_of(std::size_t part) const;
  void write_at(std::uint64_t offset, std::string_view bytes);
  void save_plan();
  void save(std::size_t part);
  std::filesystem::path progress_path() const { return path_.string() + ".parts"; }

  std::filesystem::path path_;
  bool is_verified_;
  core::Descriptor file_, progress_;
  std::uint64_t size_ = 0, part_size_ = 0;
  std::size_t first_line_ = 0;  ///< Length of the first line of the second file.
  std::optional<std::uint64_t> total_;
  std::vector<Part> parts_;
};

/// Changes with each start of the machine: before one, what was written may not have reached the
/// disk.
std::string boot_id();

/// The size of a part of content of this size.
std::uint64_t part_size_of(std::uint64_t total);

}  // namespace pipeline::fetch

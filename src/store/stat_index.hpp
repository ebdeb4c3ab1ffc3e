/// @file
/// Digests of files, kept between runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <unordered_map>

#include "core/digest.hpp"

namespace pipeline::store {

using WallClock = std::chrono::system_clock::time_point (*)();

/// Remembers digests by (path, size, mtime, ctime, inode, device), so that unchanged files are not
/// read.
class StatIndex {
 public:
  /// @param file the index between runs; loaded on first use, written by save()
  /// @param now  current time, to detect files that changed too recently to be kept
  explicit StatIndex(std::filesystem::path file, WallClock now = std::chrono::system_clock::now);
  core::Digest digest(const std::filesystem::path& file);
  /// Writes the index atomically if it has changed. Files changed in the last two seconds are not
  /// kept, because a second change could have the same time stamp.
  void save();

 private:
  struct Stamp {
    std::uint64_t size = 0;
    std::int64_t mtime_ns = -1, ctime_ns = -1;
    std::uint64_t inode = 0, device = 0;
    bool operator==(const Stamp&) const = default;
  };
  struct Entry {
    Stamp stamp;
    core::Digest digest;
    bool kept = false;  ///< save() writes the entry.
    bool used = false;  ///< Requested since the index was loaded.
  };
  std::filesystem::path file_;
  WallClock now_;
  std::unordered_map<std::string, Entry> entries_;
  bool loaded_ = false, changed_ = false;
  void load();
};

}  // namespace pipeline::store

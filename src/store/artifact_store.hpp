/// @file
/// Files and folders by the SHA-256 of their content, in a directory: `artifacts/ab/cdef...`. What
/// is there is whole and read-only.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/digest.hpp"

struct stat;

namespace pipeline::store {

struct StoredArtifact {
  core::Digest digest;
  bool is_directory = false;
  std::uint64_t bytes = 0;
};

/// A file of a tree: where it is to stand, and where it is now.
struct TreeEntry {
  std::string relative_path;  ///< With `/`; never absolute, never with `..`.
  std::filesystem::path source;
};

/// Remembers digests of files by (path, size, mtime, ctime, inode), so that what has not changed is
/// not read again.
using WallClock = std::chrono::system_clock::time_point (*)();

class StatIndex {
 public:
  /// @param file where the index is kept between runs; loaded on first use, written by save()
  /// @param now  tells which files have changed too recently to be kept
  explicit StatIndex(std::filesystem::path file, WallClock now = std::chrono::system_clock::now);
  core::Digest digest(const std::filesystem::path& file);
  /// Writes the index if it has changed, atomically. Files changed in the last two seconds are not
  /// kept: their time stamp may not tell a second change.
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
    bool kept = false;  ///< May be written to the file.
    bool used = false;  ///< Asked for since it was loaded.
  };
  std::filesystem::path file_;
  WallClock now_;
  std::unordered_map<std::string, Entry> entries_;
  bool loaded_ = false, changed_ = false;
  void load();
};

class ArtifactStore {
 public:
  explicit ArtifactStore(std::filesystem::path folder);

  /// Takes a file or folder that nobody writes to any more into the store, by rename where that is
  /// possible; it is gone from `path` afterwards. The digest of a file is that of its content; of a
  /// folder, that of the sorted list of (path, kind, executable bit, digest). Symbolic links that
  /// stay inside the folder are kept, others are an EnvironmentError, as are sockets and devices.
  /// Nothing half done is ever visible. Throws also if it changes while it is read: some process
  /// still writes to it.
  /// @param before_it_goes called when the artifact is known and all is still at `path`; may throw
  StoredArtifact take(const std::filesystem::path& path,
                      const std::function<void(const StoredArtifact&)>& before_it_goes = {});

  /// Puts copies of files together as one read-only tree and returns its digest; does nothing but
  /// hashing if the store has it already.
  StoredArtifact put_tree(std::span<const TreeEntry> entries, StatIndex& index);

  /// Where the artifact is; a path to give to steps as an input.
  std::filesystem::path path(const core::Digest& digest) const;
  bool has(const core::Digest& digest) const;
  /// Reads it all and compares: false if it is missing or damaged. A damaged one is moved aside.
  bool is_intact(const core::Digest& digest);
  /// The same, and gives it the marks that looks_whole() knows it by.
  bool verify(const core::Digest& digest);
  /// Cheap check by size and modification time, which every artifact was given when it was taken; a
  /// mismatch falls back to verify().
  bool looks_whole(const core::Digest& digest);
  /// Copies it out to `target`, writable, never over something that exists.
  void copy_out(const core::Digest& digest, const std::filesystem::path& target) const;
  /// The artifact once more at `target`, which must not exist, on the store's file system:
  /// read-only like the artifact itself, since its files are links to the artifact's; copies where
  /// the file system cannot link, or not so often. For who reads it and then removes it.
  void link_out(const core::Digest& digest, const std::filesystem::path& target) const;
  /// Every artifact that is there.
  std::vector<core::Digest> all() const;
  /// Removes every artifact for which `is_used` says no, damaged ones and what killed processes
  /// have left; returns the bytes freed.
  std::uint64_t collect(const std::function<bool(const core::Digest&)>& is_used);

 private:
  using OnKnown = std::function<void(const StoredArtifact&)>;
  StoredArtifact take_file(const std::filesystem::path& source, const struct stat& status,
                           const OnKnown& on_known);
  StoredArtifact take_folder(const std::filesystem::path& source, const OnKnown& on_known);
  /// Gives what is read-only and marked its final name; an equal one may be there already. False if
  /// it lies on another file system.
  bool publish(const std::filesystem::path& sealed, const core::Digest& digest);
  bool read_whole(const core::Digest& digest, bool marks_it);
  void set_aside(const std::filesystem::path& target, const struct stat& status);

  std::filesystem::path folder_;
};

}  // namespace pipeline::store

/// @file
/// Stores files and folders by the SHA-256 of their content, in a directory:
/// `artifacts/ab/cdef...`. Everything in it is complete, and its files are read-only.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/digest.hpp"
#include "model/elsewhere.hpp"
#include "store/artifact_holds.hpp"
#include "store/stat_index.hpp"

struct stat;

namespace pipeline::store {

struct StoredArtifact {
  core::Digest digest;
  bool is_directory = false;
  std::uint64_t bytes = 0;
  /// Describes for people how an output came into the store: `moved`, or `copied, because ...`;
  /// empty if that is not known.
  std::string way = {};
  /// While the hold lives, remove() leaves the artifact, which no record names yet.
  ArtifactHold hold = {};
};

/// Returns true if code or inputs of this size are read as a whole before a step uses them, which
/// takes milliseconds and finds every flipped bit. For larger ones, only sizes and times are
/// compared.
constexpr bool is_read_on_use(std::uint64_t bytes, std::size_t files) {
  return bytes <= 1 << 20 && files <= 256;
}

/// A file of a tree: its path in the tree, and its current path.
struct TreeEntry {
  std::string relative_path;  ///< With `/`; never absolute, never with `..`.
  std::filesystem::path source;
};

/// A file of a tree that is stored.
struct TreeFile {
  std::string path;
  core::Digest digest;
  bool executable = false;
};

class ArtifactStore {
 public:
  using BeforeRemoval = std::function<void(const StoredArtifact&)>;

  explicit ArtifactStore(std::filesystem::path folder);

  /// Moves a file or folder into the store, by rename where possible; no process may write to it
  /// any more. The digest of a file is that of its content; the digest of a folder is that of the
  /// sorted list of (path, kind, executable bit, digest). Symbolic links that stay inside the
  /// folder are kept. Throws EnvironmentError for other links, sockets and devices, and if a
  /// process changes the content meanwhile. A partial artifact is never visible, not even after a
  /// power failure: the content is on the disk first.
  /// @param before_removal called once, when the artifact is known and everything is still at
  /// `path`; may throw
  /// @param other_name the absolute path at which the step saw the folder: links to it, and to
  /// `path`, become relative
  StoredArtifact take(const std::filesystem::path& path, const BeforeRemoval& before_removal = {},
                      const std::filesystem::path& other_name = {});

  /// Copies files into one read-only tree; if the store has the tree already, only hashes the
  /// files. A tree for which is_read_on_use() is true need not survive a power failure.
  /// @param files if not null, receives the files of the tree, sorted by path
  StoredArtifact put_tree(std::span<const TreeEntry> entries, StatIndex& index,
                          std::vector<TreeFile>* files = nullptr);

  /// Returns the artifact's path, which steps can use as an input.
  std::filesystem::path path(const core::Digest& digest) const;
  bool has(const core::Digest& digest) const;
  /// Reads the whole artifact and compares digests: returns false if it is missing or damaged. A
  /// damaged artifact is moved aside.
  bool is_intact(const core::Digest& digest);
  /// Checks the artifact as is_intact() does, and sets the marks that looks_whole() checks.
  bool verify(const core::Digest& digest);
  /// Checks the artifact cheaply, by its size and by the modification time that it was given when
  /// it was stored. On a mismatch calls verify().
  bool looks_whole(const core::Digest& digest);
  /// Copies the artifact to `target` with write permission; never overwrites existing files.
  void copy_out(const core::Digest& digest, const std::filesystem::path& target) const;
  /// Makes a read-only second copy at `target`, which must not exist, on the store's file system.
  /// The copy's files are hard links to the artifact's, or copies where the file system has no hard
  /// links or a file has its maximum number of them. For callers that read the copy and then
  /// remove it.
  void link_out(const core::Digest& digest, const std::filesystem::path& target) const;
  /// Notes that a remote store has the artifact, so that results with it can be reused. The note
  /// stays when the content is fetched.
  void note_elsewhere(const core::Digest& digest, const model::Elsewhere& place);
  /// Returns the note of an artifact that is not in this store; nothing for others.
  std::optional<model::Elsewhere> elsewhere(const core::Digest& digest) const;
  /// Removes the note: the remote store does not have the artifact.
  void forget_elsewhere(const core::Digest& digest);
  /// Returns true if the artifact is here or elsewhere.
  bool is_known(const core::Digest& digest) const;
  /// Returns true if the artifact is here and looks_whole(), or is elsewhere.
  bool is_kept(const core::Digest& digest);
  /// Returns a hold as take() does, for an artifact that the store may have already.
  ArtifactHold hold(const core::Digest& digest) { return holds_.hold(digest); }
  /// Takes artifacts and their notes out of the store, except artifacts that are held. The caller
  /// knows that no record names them.
  /// @return owns the content of the artifacts, and removes it from the disk at destruction
  [[nodiscard]] std::shared_ptr<const void> remove(std::span<const core::Digest> digests);
  /// Returns all artifacts in the store.
  std::vector<core::Digest> all() const;
  /// Removes every artifact for which `is_used` returns false, damaged artifacts, and files left by
  /// killed processes; returns the bytes freed.
  std::uint64_t collect(const std::function<bool(const core::Digest&)>& is_used);

 private:
  StoredArtifact take_file(const std::filesystem::path& source, const struct stat& status,
                           const BeforeRemoval& before_removal);
  StoredArtifact take_folder(const std::filesystem::path& source,
                             const std::filesystem::path& other_name,
                             const BeforeRemoval& before_removal);
  /// Renames a sealed and marked artifact to its final path, where an equal one may exist already.
  /// Returns false if it is on another file system.
  bool publish(const std::filesystem::path& sealed, const core::Digest& digest);
  enum class Marks { keep, set };
  bool read_whole(const core::Digest& digest, Marks marks);
  void remove_notes(const std::function<bool(const core::Digest&)>& is_used);
  void set_aside(const std::filesystem::path& target);

  std::filesystem::path folder_;
  ArtifactHolds holds_;
};

}  // namespace pipeline::store

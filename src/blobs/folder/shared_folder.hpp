/// @file
/// The files of a remote store that is a folder. All functions block, throw BlobError and
/// EnvironmentError, and may be called by several threads and machines at once.
///
///   KEY        a blob, replaced as a whole by a rename
///   .new/      files that are being written
///   .locks/    files that are locked for a conditional write (BlobStore::put_if())
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "blobs/blob_store.hpp"
#include "core/file.hpp"

namespace pipeline::blobs::folder {

class SharedFolder {
 public:
  /// @param path absolute; new files and folders get the permissions of this folder
  explicit SharedFolder(std::filesystem::path path) : path_(std::move(path)) {}

  std::string url() const { return "file://" + path_.string(); }
  /// Returns the path of a blob. Throws BlobError for a key that is not a path below the folder:
  /// keys come from records that others can write.
  std::filesystem::path path_of(std::string_view key) const;
  /// Throws EnvironmentError if the folder does not exist, because it may not be mounted: its blobs
  /// must not count as missing.
  void check_exists() const;

  /// Returns an open file, or nothing if there is no blob.
  std::optional<core::Descriptor> find(const std::string& key) const;
  /// Fills `into`, with less at the end of the file; returns the number of bytes.
  std::size_t read(const core::Descriptor& file, const std::string& key, std::uint64_t offset,
                   std::span<char> into) const;
  std::optional<std::string> find_text(const std::string& key) const;
  std::vector<Entry> entries(const std::string& prefix) const;  ///< In the order of their keys.
  std::vector<std::string> folders(const std::string& folder) const;
  void remove(const std::string& key) const;
  void copy(const std::string& from, const std::string& to) const;

  /// An open folder, and the name of an entry in it.
  struct Place {
    core::Descriptor folder;
    std::string name;
  };

  /// A file in `.new`, removed at destruction.
  class NewFile {
   public:
    explicit NewFile(const SharedFolder& folder);
    ~NewFile();
    NewFile(const NewFile&) = delete;
    NewFile& operator=(const NewFile&) = delete;
    const Place& place() const { return place_; }
    void create();
    void write(std::string_view bytes) { core::write_fully(file_.get(), bytes, path_); }
    void sync();  ///< Writes the file to the disk and closes it; called after the last write().

   private:
    const SharedFolder& folder_;
    std::filesystem::path path_;
    Place place_;
    core::Descriptor file_;
  };
  /// Makes the file the blob of the key, in place of an earlier blob.
  void replace(const NewFile& file, const std::string& key) const;
  /// Makes the file the blob of the key, and returns true; returns false if the key has a blob.
  bool add(const NewFile& file, const std::string& key) const;
  /// Locks the key until the descriptor is destroyed. Returns nothing if another process has the
  /// lock.
  std::optional<core::Descriptor> try_lock(const std::string& key) const;
  /// Removes the files that killed processes have left in `.new`.
  void remove_abandoned() const;

 private:
  Place place_of(const std::filesystem::path& path) const;
  core::EnvironmentError failure(const std::string& what, int error_number) const;
  void make_folders(const std::filesystem::path& folder) const;
  int publish(const NewFile& file, const std::string& key, bool replaces) const;
  void add_entries(const std::filesystem::path& folder, std::string_view prefix,
                   std::vector<Entry>& found) const;

  std::filesystem::path path_;
};

}  // namespace pipeline::blobs::folder

/// @file
/// The files of an image archive: a tar whose contents are read where they lie, or a folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace pipeline::oci {

/// A file, or a part of one.
struct Slice {
  std::filesystem::path file;
  std::uint64_t offset = 0, size = 0;
};

/// Returns at most `most` bytes of the slice, from its byte `begin` on. Throws EnvironmentError,
/// also if the file has become shorter.
std::string read_slice(const Slice& slice, std::uint64_t begin, std::size_t most);

class ArchiveFiles {
 public:
  /// Reads the headers of a tar, without the contents; reads nothing of a folder. Throws
  /// EnvironmentError for a file that is not a whole tar.
  ArchiveFiles(std::filesystem::path path, bool is_folder);

  /// Returns the regular file of this name; links within the tar are followed.
  std::optional<Slice> find(std::string name) const;

 private:
  class Headers;

  const std::filesystem::path path_;
  const bool is_folder_;
  std::map<std::string, Slice> files_;
  std::map<std::string, std::string> links_;
};

}  // namespace pipeline::oci

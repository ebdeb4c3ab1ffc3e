/// @file
/// The locked state of data that steps fetch from an address.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pipeline::lockfile {

struct LockedData {
  std::string address;      ///< data_address(), which holds no credentials.
  std::string sha256;       ///< Digest of the file, hex; for a folder, its digest as an artifact.
  std::uint64_t size = 0;   ///< Bytes of the file, or of all files of a folder.
  std::uint64_t files = 0;  ///< Number of files of a folder; 0 for a file.
  /// The server's headers, by which a change is detected; for a folder, a digest over the ETags of
  /// its files. Empty if the server sends none.
  std::string etag, modified;
  std::string version;  ///< Version id of the object; empty if the bucket keeps no versions.
  bool operator==(const LockedData&) const = default;
};

/// Returns the name of an address in the lock file: the URL, with the first digits of its query's
/// SHA-256 in place of the query, which may contain a signature.
/// @param version the version id that the pipeline asks for; may be empty
std::string data_address(std::string_view url, std::string_view version);

/// Returns true if the server's headers for two contents are equal, as far as both are known; false
/// if they have none in common.
bool is_same_content(const LockedData& one, const LockedData& other);

/// Returns true for a text without control characters, as all in a lock file must be.
bool is_plain_text(std::string_view text);

}  // namespace pipeline::lockfile

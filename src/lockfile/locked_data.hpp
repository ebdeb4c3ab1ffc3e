/// @file
/// Data that steps fetch from an address, as it was when it was locked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pipeline::lockfile {

struct LockedData {
  std::string address;      ///< data_address(), which holds no credentials.
  std::string sha256;       ///< Hex; of a folder its digest as an artifact.
  std::uint64_t size = 0;   ///< In bytes; of a folder the sum of its files.
  std::uint64_t files = 0;  ///< Of a folder; 0 for a file.
  /// What the server said then, by which a change is noticed; of a folder a digest over the ETags
  /// of its files. Empty if the server says none.
  std::string etag, modified;
  std::string version;  ///< The version id that the object had; empty if the bucket keeps none.
  bool operator==(const LockedData&) const = default;
};

/// Returns the name of an address in the lock file: the URL without its query, which may hold a
/// signature, and instead of it the first digits of its SHA-256.
/// @param version the version id that the pipeline asks for; may be empty
std::string data_address(std::string_view url, std::string_view version);

/// Returns true if the server's words for two contents are the same, as far as both have them.
/// False if they have none in common.
bool is_same_content(const LockedData& one, const LockedData& other);

/// True for what may stand in a lock file as an address, ETag or version: no control characters.
bool is_plain_text(std::string_view text);

}  // namespace pipeline::lockfile

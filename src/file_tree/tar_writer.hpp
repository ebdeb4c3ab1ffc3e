/// @file
/// Writes a tar in POSIX's ustar format, with extensions (pax) for values that do not fit into it.
#pragma once

#include <cstdint>
#include <string>

namespace pipeline::file_tree {

/// The values of an entry's header; its owner and group are root.
struct TarHeader {
  char type = '0';  ///< `0` a file, `2` a symbolic link, `5` a folder.
  std::string name;
  std::string link = {};  ///< Target of a symbolic link.
  unsigned mode = 0;
  std::uint64_t size = 0;  ///< Bytes of the content, which follows with its tar_padding().
  std::int64_t time = 0;   ///< Seconds since 1970, at least 0.
};

/// Returns the header's blocks. A folder's name gets a `/` at its end.
std::string tar_header(TarHeader header);
/// Returns the zeros that follow a content of this size.
std::string tar_padding(std::uint64_t size);
/// Returns the end of an archive.
std::string tar_end();

}  // namespace pipeline::file_tree

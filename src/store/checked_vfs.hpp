/// @file
/// A layer below SQLite that detects damage: every page of a database has a checksum in its last
/// eight bytes, as in SQLite's own cksumvfs.
#pragma once

namespace pipeline::store {

/// Registers the layer, once, and returns its name for sqlite3_open_v2; null, which stands for
/// SQLite's own layer, if that fails. Reading a page with a wrong checksum fails with
/// SQLITE_IOERR_DATA. Only pages of page_size bytes in databases with reserved_bytes reserved bytes
/// are checked.
const char* checked_vfs();
/// Returns and clears the errno of this thread's last failure; 0: none.
int last_disk_error();

inline constexpr int page_size = 4096;
inline constexpr int reserved_bytes = 8;

}  // namespace pipeline::store

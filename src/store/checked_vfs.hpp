/// @file
/// A layer below SQLite that notices damage: every page of a database carries a checksum in its last eight bytes, as in SQLite's own cksumvfs.
#pragma once

namespace pipeline::store {

/// Registers the layer, once, and returns its name for sqlite3_open_v2. A page that does not fit its checksum reads as SQLITE_IOERR_DATA. Only pages of
/// kPageSize bytes in databases with kReservedBytes reserved ones are looked at.
const char* checked_vfs();

inline constexpr int kPageSize = 4096;
inline constexpr int kReservedBytes = 8;

}  // namespace pipeline::store

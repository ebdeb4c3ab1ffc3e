/// @file
/// Checks a run store that another user may have written, before its records are read.
#pragma once

#include <filesystem>
#include <string>

namespace pipeline::store {

/// Throws EnvironmentError unless the file is a run store as this version of the program writes it.
/// The texts of its tables and indexes must equal ours, so that SQLite executes no CHECK, DEFAULT,
/// trigger, view or computed column that another user wrote. Its pages must be whole, and each
/// value of the run must have its column's type and range. SQLite reads the file in its most
/// defensive mode, for a bounded time. A reader of our own would be a second, less tested parser of
/// the same pages.
void require_received_store(const std::filesystem::path& file, const std::string& run);

}  // namespace pipeline::store

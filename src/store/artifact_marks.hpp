/// @file
/// Makes files of artifacts read-only, and marks files and folders, so that changes are noticed.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "core/digest.hpp"
#include "file_tree/tree.hpp"

namespace pipeline::store {

/// Returns the status of a file, not that of a link's target; nothing if the file does not exist.
/// Throws EnvironmentError for any other failure.
std::optional<struct stat> status_of(const char* path);
std::optional<struct stat> status_of(const std::filesystem::path& path);

/// Modification time of all artifacts, without the nanoseconds.
inline constexpr std::time_t artifact_time = 1'000'000'000;
/// Returns the mark of one file, folder or link of an artifact: a hash of the artifact's digest,
/// the path in the artifact and the size. The mark is kept as the nanoseconds of the modification
/// time, because every change of a file changes its time.
/// @param place path in the artifact; empty: the artifact itself
long mark(const core::Digest& digest, std::string_view place, std::uint64_t bytes);
/// Sets the modification time to artifact_time and the mark.
void set_mark(const std::filesystem::path& path, long mark);
/// Returns true if the modification time is artifact_time and the mark.
bool has_mark(const struct stat& status, long mark);
/// Throws the ContentError for content that changed while it was read.
[[noreturn]] void throw_changed(const std::filesystem::path& path);

/// Sets the permissions. Throws EnvironmentError.
void set_mode(const std::filesystem::path& path, mode_t mode);
/// Returns a file's size, 0 for others: the size that mark() takes.
std::uint64_t size_of(const file_tree::TreeNode& node);

/// Sets the permissions of a file, and gives it a time that any later change replaces, however
/// coarse the file system's clock is.
/// @param mode without the right to write, so that changes fail at once
void freeze(const std::filesystem::path& path, mode_t mode);
/// Freezes a folder with everything below it. The folder itself stays writable, because only a
/// writable folder can be renamed.
void freeze(const std::filesystem::path& root, const std::vector<file_tree::TreeNode>& nodes);
/// Throws ContentError if the file has changed since freeze().
/// @param bytes the size at freeze(); nothing: the size is not compared
void check_frozen(const std::filesystem::path& path, std::optional<std::uint64_t> bytes);
/// Throws ContentError if the folder or anything below it has changed since freeze().
void check_frozen(const std::filesystem::path& root, const std::vector<file_tree::TreeNode>& nodes);

/// Makes the files below a folder read-only, and sets the marks of everything below it.
/// seal_folder() then sets the mark of the folder itself.
void seal_contents(const std::filesystem::path& root, const std::vector<file_tree::TreeNode>& nodes,
                   const core::Digest& digest);
void seal_folder(const std::filesystem::path& root, const core::Digest& digest);

}  // namespace pipeline::store

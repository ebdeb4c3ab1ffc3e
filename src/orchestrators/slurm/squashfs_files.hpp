/// @file
/// The SquashFS files of images in the user's cache folder, and what is recorded beside each.
#pragma once

#include <filesystem>
#include <vector>

namespace pipeline::orchestrators::slurm {

std::filesystem::path squashfs_folder();

/// Returns true if a file is a whole SquashFS, as far as its first bytes and its size tell.
bool is_whole_squashfs(const std::filesystem::path& file);

/// Records the digest of a file that was made.
/// @param name where the file is going to be
void record_content(const std::filesystem::path& made, const std::filesystem::path& name);

/// Returns true if the file's content has the recorded digest. Reads all of the file once after
/// each change of its time.
bool has_recorded_content(const std::filesystem::path& file);

/// Returns all files, in the order of their names.
std::vector<std::filesystem::path> squashfs_files();

/// Removes a file with its record. Returns false if a `pipe` is making it.
bool remove_squashfs(const std::filesystem::path& file);

}  // namespace pipeline::orchestrators::slurm

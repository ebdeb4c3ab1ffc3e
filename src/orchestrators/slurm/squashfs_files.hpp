/// @file
/// The SquashFS files of images in the user's cache folder, and what is recorded beside each.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <pipeline/settings.hpp>

namespace pipeline::orchestrators::slurm {

/// Returns the folder of these files.
std::filesystem::path squashfs_folder();

/// Returns the path of an image's file, which may not exist.
/// @param identity see docker::image_identity()
std::filesystem::path squashfs_file(const std::string& identity);

/// Returns the variables of an image that an engine describes.
StringMap variables_of_image(const nlohmann::json& image);

/// Returns the seconds since 1970 of a time such as `2026-11-27T21:23:01.7Z`; 0 for another text.
std::int64_t seconds_of(const std::string& time);

/// Records a text about an image beside its file, in place of an earlier one under this key.
void record_image(const std::filesystem::path& file, std::string_view key, const std::string& text);

/// Returns the text that was recorded under a key; empty if there is none, or the file is gone.
std::string recorded_image(std::string_view key);

/// Returns true if a file is a whole SquashFS, as far as its first bytes and its size tell.
bool is_whole_squashfs(const std::filesystem::path& file);

/// Records the digest of a file that was made.
/// @param name the path to which the file is going to be renamed
void record_content(const std::filesystem::path& made, const std::filesystem::path& name);

/// Returns true if the file's content has the recorded digest. Reads all of the file once after
/// each change of its time.
bool has_recorded_content(const std::filesystem::path& file);

/// Returns all files, in the order of their names.
std::vector<std::filesystem::path> squashfs_files();

/// Removes a file with its record. Returns false if a `pipe` is making it.
bool remove_squashfs(const std::filesystem::path& file);

}  // namespace pipeline::orchestrators::slurm

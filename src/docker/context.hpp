/// @file
/// Build contexts: which files of a folder belong to one.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "archive/tar_stream.hpp"

namespace pipeline::docker {

using archive::ContextFile;

/// The files, symlinks and folders below `root` that docker's ignore rules leave, sorted by path.
/// Symlinks are not followed. `always` (relative paths) is taken whatever the rules say.
std::vector<ContextFile> folder_context(const std::filesystem::path& root,
                                        std::string_view ignore_rules,
                                        const std::vector<std::string>& always);

/// The step's code below `root`: what `patterns` (files, folders, globs) name, or with none
/// everything; never what .dockerignore and .gitignore leave out, nor `.git` and `.pipe`. Sorted by
/// path.
std::vector<ContextFile> project_files(const std::filesystem::path& root,
                                       const std::vector<std::string>& patterns);

/// Total size in bytes.
std::uint64_t size_of(const std::vector<ContextFile>& files);
/// `12 MiB data/a.csv, ...`: the largest `count` files.
std::string largest(const std::vector<ContextFile>& files, std::size_t count);

}  // namespace pipeline::docker

/// @file
/// Build contexts: selects the files of a folder that belong to one.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "file_tree/tar_stream.hpp"

namespace pipeline::docker {

using file_tree::ContextFile;

/// Returns the files, symlinks and folders below `root` that docker's ignore rules do not exclude,
/// sorted by path. Symlinks are not followed. `always` (relative paths) are included even if a rule
/// excludes them.
/// @param state the state folder, which has new files after each run, and is always left out, like
/// other state folders and lock files; may be empty
std::vector<ContextFile> folder_context(const std::filesystem::path& root,
                                        std::string_view ignore_rules,
                                        const std::vector<std::string>& always,
                                        const std::filesystem::path& state = {});

/// Returns the step's code below `root`, sorted by path: the matches of `patterns` (files, folders,
/// globs), or everything if there are none; without what .dockerignore and .gitignore exclude, and
/// without `.git`, `.pipe` and the state folder.
std::vector<ContextFile> project_files(const std::filesystem::path& root,
                                       const std::vector<std::string>& patterns,
                                       const std::filesystem::path& state = {});

/// Returns the files of a Python project to install: project_files() without the remains of an
/// earlier build (`build/lib`, `*.egg-info`).
std::vector<ContextFile> package_files(const std::filesystem::path& folder,
                                       const std::filesystem::path& state = {});

/// Returns the file at `path`, or the package_files() of the folder at `path`, with their paths
/// below `root`. Throws InputError for a path that leaves `root`.
std::vector<ContextFile> local_files(const std::string& path, const std::filesystem::path& root,
                                     const std::filesystem::path& state = {});

/// Returns the total size in bytes.
std::uint64_t size_of(const std::vector<ContextFile>& files);
/// Lists the largest `count` files: `12 MiB data/a.csv, ...`.
std::string largest(const std::vector<ContextFile>& files, std::size_t count);

}  // namespace pipeline::docker

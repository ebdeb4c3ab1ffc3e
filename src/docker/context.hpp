/// @file
/// Build contexts: which files of a folder belong to one, and the tar of them, made while it is
/// sent.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "docker/image_plan.hpp"
#include "net/http.hpp"

namespace pipeline::docker {

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

/// A tar (GNU format) of the files, reproducible: owner root, times 0. Files are read when their
/// turn comes; one that has become shorter meanwhile is filled up with zeros, one that cannot be
/// read throws EnvironmentError.
net::BodySource tar_stream(std::vector<ContextFile> files);

/// Total size in bytes.
std::uint64_t size_of(const std::vector<ContextFile>& files);
/// `12 MiB data/a.csv, ...`: the largest `count` files.
std::string largest(const std::vector<ContextFile>& files, std::size_t count);

}  // namespace pipeline::docker

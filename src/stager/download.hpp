/// @file
/// Downloads an object in ranges by several connections.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "core/digest.hpp"
#include "stager/transfer.hpp"

namespace pipeline::stager {

/// Writes the object to an open, empty file in any order, and returns the SHA-256 of what the file
/// then has.
/// @param file open for reading and writing
/// @param to the file's path, for messages
core::Digest download_file(const std::string& url, int file, const std::filesystem::path& to,
                           Transfer& transfer);

/// Passes the object's bytes once and in order. Memory is bounded by the ranges that are received
/// at a time.
void download_stream(const std::string& what, const std::string& url, Transfer& transfer,
                     const std::function<void(std::string_view)>& on_bytes);

}  // namespace pipeline::stager

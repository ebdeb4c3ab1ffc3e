/// @file
/// Reads a large blob in ranges, several at a time, if the store supports ranges.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "blobs/blob_store.hpp"

namespace pipeline::blobs {

/// Passes the blob's bytes once and in order. Memory is bounded by the ranges in progress.
async::Task<> read_stream(BlobStore& store, std::string key,
                          std::function<void(std::string_view)> on_bytes,
                          core::CancelSource* cancel);

/// A file that is open for reading and writing.
struct OpenFile {
  int descriptor;
  std::filesystem::path path;  ///< For messages.
};

/// Writes the blob to an open, empty file, and returns the SHA-256 of the written bytes in hex.
/// Throws UnusableBlob if the blob has more than `max_bytes`, or became shorter meanwhile.
async::Task<std::string> read_to_file(BlobStore& store, std::string key, OpenFile file,
                                      std::uint64_t max_bytes, core::CancelSource* cancel);

}  // namespace pipeline::blobs

/// @file
/// Makes a pod's inputs from the node's cache, which holds the objects of the remote store as they
/// are: files, and folders as tars.
#pragma once

#include <filesystem>

#include <nlohmann/json.hpp>

#include "stager/node_cache.hpp"
#include "stager/transfer.hpp"

namespace pipeline::stager {

/// Removes a file, or the entries of a folder. The folder itself stays, because it may be a volume
/// of the pod, which cannot be removed.
void clear(const std::filesystem::path& path);

/// Makes the item's file or folder at `to` from the cache, and compares its digest. An object with
/// other content is removed from the cache and downloaded again. Returns false if the cache cannot
/// be used; then nothing is at `to`, or an empty folder. Throws DamagedItem if the remote store has
/// other content, TransferError, EnvironmentError.
/// @param item `{"kind": "file", "url", "digest", "executable"}` or `{"kind": "tree", ...}`
bool fetch_cached(const nlohmann::json& item, const std::filesystem::path& to, NodeCache& cache,
                  Transfer& transfer);

}  // namespace pipeline::stager

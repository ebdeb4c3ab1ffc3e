/// @file
/// Transfers content in parts of equal size, each by a signed URL of its own, several at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "blobs/transfer_plan.hpp"
#include "core/digest.hpp"
#include "file_tree/content.hpp"
#include "stager/transfer.hpp"

namespace pipeline::stager {

using blobs::min_part;
using blobs::part_size;

/// Returns the URLs of parts, in order, from `{"before", "after", "signatures"}`.
std::vector<std::string> part_urls(const nlohmann::json& signed_parts);

/// Uploads the content in parts of equal size to `urls`, collects their tags in `tags`, and returns
/// the content's SHA-256.
core::Digest send_parts(const std::string& what, const file_tree::Content& content,
                        const std::vector<std::string>& urls, std::uint64_t part,
                        Transfer& transfer, nlohmann::json& tags);

}  // namespace pipeline::stager

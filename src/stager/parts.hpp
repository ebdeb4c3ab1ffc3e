/// @file
/// Transfers content in parts of equal size, each by a signed URL of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/digest.hpp"
#include "file_tree/content.hpp"
#include "stager/transfer.hpp"

namespace pipeline::stager {

inline constexpr std::uint64_t min_part = 16u << 20;

/// Returns the URLs of parts, in order, from `{"before", "after", "signatures"}`.
std::vector<std::string> part_urls(const nlohmann::json& signed_parts);

/// Returns the size of the parts, for which the number of URLs suffices.
std::uint64_t part_size(std::uint64_t bytes, std::size_t urls);

/// Uploads the content in parts of equal size to `urls`, collects their tags in `tags`, and returns
/// the content's SHA-256.
core::Digest send_parts(const std::string& what, const file_tree::Content& content,
                        const std::vector<std::string>& urls, std::uint64_t part,
                        Transfer& transfer, nlohmann::json& tags);

}  // namespace pipeline::stager

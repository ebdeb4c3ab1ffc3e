/// @file
/// Transfers content in parts of equal size, each by a signed URL of its own, several at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
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

/// Sums of content in parts of equal size.
struct PartSums {
  core::Digest digest;            ///< SHA-256 of the whole content.
  std::vector<std::string> md5s;  ///< MD5s of the parts, 16 bytes each.
};
/// Computes the sums by several threads.
/// @param part bytes of a part
/// @param on_bytes called with the whole content, in order, by one thread at a time
PartSums hash_parts(const file_tree::Content& content, std::uint64_t part, ThreadBudget& threads,
                    const std::function<void(std::string_view)>& on_bytes);

/// How send_parts() divides content.
struct Parts {
  std::uint64_t size;              ///< Bytes of a part.
  const PartSums* sums = nullptr;  ///< The sums of the parts; null: not known.
};
/// The content that was sent, in parts of equal size.
struct SentParts {
  core::Digest digest;                            ///< SHA-256 of the whole content.
  nlohmann::json tags = nlohmann::json::array();  ///< ETags of the parts, in order.
};
/// Uploads the content in parts to `urls`.
/// @param on_bytes called with the whole content, in order, by one thread at a time
SentParts send_parts(const std::string& what, const file_tree::Content& content,
                     const std::vector<std::string>& urls, Parts parts, Transfer& transfer,
                     const std::function<void(std::string_view)>& on_bytes = {});

}  // namespace pipeline::stager

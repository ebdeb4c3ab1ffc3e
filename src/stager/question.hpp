/// @file
/// Asks the driver about large outputs before they are uploaded. An output whose content the store
/// has need not be uploaded; other outputs can be uploaded to the keys of their artifacts, which
/// depend on their digests. Without an answer, outputs are uploaded to keys of the attempt, and
/// copied on the server.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "stager/parts.hpp"
#include "stager/transfer.hpp"

namespace pipeline::stager {

/// An output whose content was hashed.
struct HashedOutput {
  std::uint64_t bytes = 0, part = 0;  ///< Size of the content, and of each of its parts.
  PartSums sums;
  nlohmann::json described = nlohmann::json::object();  ///< For a folder: see describe_folder().
  nlohmann::json answer = nlohmann::json::object();     ///< Empty without an answer.
};

/// Adds `artifact`, the digest of the folder, and `artifact_bytes`, the bytes of its files.
/// @param nodes with the digests of the files
void describe_folder(const std::vector<file_tree::TreeNode>& nodes, nlohmann::json& entry);
/// Returns the MD5s of the parts as a server writes them: in hexadecimal, in quotes.
nlohmann::json tags_of(const PartSums& sums);

/// Hashes the outputs of at least `from` bytes that stay in the store, and asks the driver, if the
/// document of collect() has `{"question": {"write": URL, "answer": URL, "from": BYTES, "seconds":
/// N}}`. The question is `{"outputs": [{"name", "kind", "bytes", "digest", "tags", "artifact"}]}`,
/// with the MD5s of the parts as tags. The answer, for which this waits some seconds, has
/// `{"outputs": {NAME: ANSWER}}`: `{"is_there": true}`, or the `upload` with signed URLs of parts
/// (part_urls()). A failure is reported only.
/// @return what was hashed, by the outputs' names
std::map<std::string, HashedOutput> ask_driver(const nlohmann::json& document, Transfer& transfer);

}  // namespace pipeline::stager

/// @file
/// The statement of a pod's stager about one of its outputs, in a question or in its report. Only
/// files that implement PodStaging include this.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/digest.hpp"
#include "kubernetes_api/json.hpp"
#include "orchestrators/kubernetes/pod_staging.hpp"

namespace pipeline::orchestrators::kubernetes {

/// Returns true for a SHA-256 in hex.
inline bool is_digest(std::string_view text) {
  try {
    core::Digest::from_hex(text);
  } catch (const std::invalid_argument&) {
    return false;
  }
  return true;
}

/// A statement about an output. Untrusted, because a step could have written it: each value is
/// verified.
struct PodStaging::Sent {
  std::string name, key, upload, kind, digest;
  std::string artifact;              ///< Digest as an artifact, for a folder.
  std::uint64_t bytes = 0;           ///< Size of the blob.
  std::uint64_t artifact_bytes = 0;  ///< Sum of the sizes of its files, for a folder.
  bool executable = false;
  bool at_once = false;  ///< Sent in one request, without the multipart upload that was begun.
  bool direct = false;   ///< Sent to the artifact's key, or not sent because that blob exists.
  std::vector<std::string> tags;
  std::string crc64nvme;  ///< Checksum in base64; empty for an output that the driver downloads.
  explicit Sent(const nlohmann::json& reported)
      : name(kubernetes_api::text_at(reported, "/name")),
        key(kubernetes_api::text_at(reported, "/key")),
        upload(kubernetes_api::text_at(reported, "/upload")),
        kind(kubernetes_api::text_at(reported, "/kind")),
        digest(kubernetes_api::text_at(reported, "/digest")),
        artifact(kubernetes_api::text_at(reported, "/artifact")),
        crc64nvme(kubernetes_api::text_at(reported, "/crc64nvme")) {
    const auto number = [&](const char* member, std::uint64_t& to) {
      if (const auto found = reported.find(member);
          found != reported.end() && found->is_number_unsigned())
        to = found->get<std::uint64_t>();
    };
    number("bytes", bytes);
    number("artifact_bytes", artifact_bytes);
    executable = kubernetes_api::at(reported, "/executable") == true;
    at_once = kubernetes_api::at(reported, "/at_once") == true;
    direct = kubernetes_api::at(reported, "/direct") == true;
    if (const auto found = reported.find("tags"); found != reported.end() && found->is_array())
      for (const auto& tag : *found) tags.push_back(tag.is_string() ? tag.get<std::string>() : "");
  }

  bool is_file() const { return kind == "file"; }
  bool is_tree() const { return kind == "tree"; }
  const std::string& artifact_digest() const { return is_tree() ? artifact : digest; }
  blobs::RemoteArtifacts::Sent blob() const {
    return {.bytes = bytes, .tags = tags, .crc64nvme = crc64nvme};
  }
};

}  // namespace pipeline::orchestrators::kubernetes

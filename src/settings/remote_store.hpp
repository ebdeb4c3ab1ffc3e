/// @file
/// A bucket of an S3-compatible server that keeps artifacts for executors that do not share this
/// machine's files. Holds no secret.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace pipeline::settings {

struct ArtifactStoreSettings {
  std::string bucket;    ///< Name of the bucket; empty if none is configured.
  std::string prefix;    ///< Prefix of all keys in the bucket; empty, or ends with `/`.
  std::string endpoint;  ///< `https://HOST[:PORT]`; if empty, AWS_ENDPOINT_URL_S3 of the
                         ///< environment, else Amazon's endpoint of the region.
  std::string
      pod_endpoint;  ///< The endpoint at which pods reach the same server; if empty, `endpoint`.
  std::string
      region;  ///< If empty, the region of the environment or ~/.aws/config, else us-east-1.
  std::optional<bool> path_style;  ///< True for `HOST/BUCKET/KEY`, false for `BUCKET.HOST/KEY`;
                                   ///< unset: true for any server but Amazon's.
  std::filesystem::path certificate_authority;  ///< PEM file; if empty, this machine's CAs.
  std::string
      aws_profile;  ///< A profile of ~/.aws; if empty, AWS_PROFILE, else the default profile.

  bool is_given() const { return !bucket.empty(); }
  bool operator==(const ArtifactStoreSettings&) const = default;
};

/// Returns `s3://BUCKET[/PREFIX]`.
std::string url_of(const ArtifactStoreSettings& store);
/// Parses `s3://BUCKET[/PREFIX]` into `store`. Returns false if the text has another form.
bool read_bucket(std::string_view text, ArtifactStoreSettings& store);

nlohmann::json to_json(const ArtifactStoreSettings& store);
/// Reads back what to_json() wrote; for any other JSON, returns a store without a bucket.
ArtifactStoreSettings artifact_store_of(const nlohmann::json& kept);

}  // namespace pipeline::settings

/// @file
/// A bucket of an S3-compatible server where artifacts are kept, for places that do not see this
/// machine's files. Holds no secret.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace pipeline::settings {

struct ArtifactStoreSettings {
  std::string bucket;        ///< Empty: there is none.
  std::string prefix;        ///< Of all keys in it; empty, or ends with `/`.
  std::string endpoint;      ///< `https://HOST[:PORT]`; empty: what the environment says
                             ///< (AWS_ENDPOINT_URL_S3), else Amazon's of the region.
  std::string pod_endpoint;  ///< Under which pods reach the same server; empty: the same.
  std::string region;        ///< Empty: what the environment or ~/.aws/config says, else us-east-1.
  std::optional<bool> path_style;  ///< `HOST/BUCKET/KEY` and not `BUCKET.HOST/KEY`; nothing: for
                                   ///< any server but Amazon's.
  std::filesystem::path certificate_authority;  ///< PEM file; empty: this machine's CAs.
  std::string aws_profile;  ///< Of ~/.aws; empty: AWS_PROFILE, else the default one.

  bool is_given() const { return !bucket.empty(); }
  bool operator==(const ArtifactStoreSettings&) const = default;
};

/// `s3://BUCKET[/PREFIX]`
std::string url_of(const ArtifactStoreSettings& store);
/// `s3://BUCKET[/PREFIX]` into `store`. False if it is none.
bool read_bucket(std::string_view text, ArtifactStoreSettings& store);

nlohmann::json to_json(const ArtifactStoreSettings& store);
/// Of what to_json() made; of anything else, nothing is given.
ArtifactStoreSettings artifact_store_of(const nlohmann::json& kept);

}  // namespace pipeline::settings

/// @file
/// A bucket of an S3-compatible server, as a remote store's settings name it. Holds no secret.
/// Pure.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "blobs/addresses.hpp"
#include "settings/remote_store.hpp"

namespace pipeline::blobs::s3 {

struct BucketSettings {
  std::string bucket;  ///< Name of the bucket; empty if none is configured.
  std::string prefix;  ///< Prefix of all keys in the bucket; empty, or ends with `/`.
  /// `https://HOST[:PORT]`; if empty, AWS_ENDPOINT_URL_S3 of the environment, else Amazon's
  /// endpoint of the region.
  std::string endpoint;
  std::string pod_endpoint;  ///< Address at which pods reach the server; if empty, `endpoint`.
  std::string region;  ///< If empty, that of the environment or ~/.aws/config, else us-east-1.
  /// True for `HOST/BUCKET/KEY`, false for `BUCKET.HOST/KEY`; unset: false for Amazon's server,
  /// unless the bucket's name has a dot, and true for any other server.
  std::optional<bool> path_style;
  std::filesystem::path certificate_authority;  ///< PEM file; if empty, this machine's CAs.
  /// A profile of ~/.aws; if empty, AWS_PROFILE, else the default profile.
  std::string aws_profile;
  std::string verify;  ///< See RemoteArtifacts::is_verified_by_consumers().
};

inline constexpr std::string_view scheme = "s3://";
/// Returns the options that a profile can write beside the address.
std::vector<Option> bucket_options();

/// Returns `s3://BUCKET[/PREFIX]`.
std::string url_of(const BucketSettings& settings);
/// Parses `s3://BUCKET[/PREFIX]` into the settings. Returns false if the text has another form.
bool read_bucket(std::string_view text, BucketSettings& settings);

/// Returns a store's settings as those of a bucket; `bucket` is empty for a store of another kind.
BucketSettings bucket_settings(const settings::RemoteStoreSettings& store);
/// Returns a bucket's settings as those of a store: the inverse of bucket_settings().
settings::RemoteStoreSettings store_settings(const BucketSettings& settings);

}  // namespace pipeline::blobs::s3

/// @file
/// The address of a bucket's objects: path style (`HOST/BUCKET/KEY`) or virtual-host style
/// (`BUCKET.HOST/KEY`). Pure.
#pragma once

#include <optional>
#include <string>

namespace pipeline::blobs::s3 {

class BucketAddress {
 public:
  /// Throws InputError for an invalid endpoint, and for an invalid region of Amazon.
  /// @param endpoint `http[s]://HOST[:PORT][/PATH]`; if empty, Amazon's endpoint of the region
  /// @param path_style see BucketSettings::path_style
  BucketAddress(const std::string& endpoint, const std::string& bucket, const std::string& region,
                std::optional<bool> path_style);

  const std::string& host() const { return host_; }  ///< Value of the Host header.
  /// Returns the path of an object, or of the bucket itself for an empty key; not encoded.
  std::string path(const std::string& key) const {
    if (key.empty()) return base_.empty() ? "/" : base_;
    return base_ + "/" + key;
  }
  /// Returns `https://HOST`.
  std::string origin() const { return scheme_ + "://" + host_; }
  bool is_amazon() const { return is_amazon_; }

 private:
  std::string scheme_, host_, base_;
  bool is_amazon_ = false;
};

}  // namespace pipeline::blobs::s3

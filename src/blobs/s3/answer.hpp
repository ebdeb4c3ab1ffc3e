/// @file
/// Error messages and advice for the responses of S3 servers. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "blobs/blob_store.hpp"

namespace pipeline::blobs::s3 {

/// The server has refused a request. Codes:
/// https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
class S3Error : public BlobError {
 public:
  S3Error(long status, std::string code, const std::string& message,
          std::vector<std::string> advice);
  long status() const { return status_; }
  /// Returns the server's error code, for example `NoSuchKey`; empty for responses without a body.
  const std::string& code() const { return code_; }

 private:
  long status_;
  std::string code_;
};

/// The names of a bucket for messages and advice.
struct BucketIdentity {
  std::string name, endpoint, region;
  std::string origin_of_keys;  ///< For example `the environment (AWS_ACCESS_KEY_ID)`.
};

/// The response to a refused request.
struct RefusedResponse {
  long status;
  std::string body;
  std::string region;  ///< The bucket's region (header x-amz-bucket-region); empty if not sent.
};

/// Reads a time of a server or a `credential_process`, such as `2026-11-27T17:06:25.000Z`; nothing
/// for any other text. A time without a zone is UTC.
std::optional<std::chrono::system_clock::time_point> parse_time(const std::string& text);

/// Returns the error for a refused request. @param what completes the message "cannot ..."
S3Error refusal(const std::string& what, const RefusedResponse& answer,
                const BucketIdentity& bucket);

}  // namespace pipeline::blobs::s3

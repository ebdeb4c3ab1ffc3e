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
  const std::string& code() const {
    return code_;
  }  ///< For example `NoSuchKey`; empty for responses without a body.

 private:
  long status_;
  std::string code_;
};

/// Names that an error message refers to.
struct Where {
  std::string bucket, endpoint, region;
  std::string origin_of_keys;  ///< For example `the environment (AWS_ACCESS_KEY_ID)`.
};

struct Answered {
  long status;
  std::string body;
  std::string region;  ///< Header x-amz-bucket-region: the bucket's region, if it differs from the
                       ///< request's.
};

/// Reads the time of a response, `2026-11-27T17:06:25.000Z`; nothing if it is none.
std::optional<std::chrono::system_clock::time_point> parse_time(const std::string& text);

/// Returns the error for a refused request. @param what completes the message "cannot ..."
S3Error refusal(const std::string& what, const Answered& answer, const Where& where);

}  // namespace pipeline::blobs::s3

/// @file
/// What an S3 server has answered, in words, and what to do about it. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"

namespace pipeline::s3 {

/// The text of the first element of this name, entities replaced; empty if there is none.
std::string xml_text(std::string_view xml, std::string_view element);

/// The server has refused. Codes:
/// https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
class S3Error : public core::EnvironmentError {
 public:
  S3Error(long status, std::string code, const std::string& message,
          std::vector<std::string> advice)
      : core::EnvironmentError(message, std::move(advice)),
        status_(status),
        code_(std::move(code)) {}
  long status() const { return status_; }
  const std::string& code() const {
    return code_;
  }  ///< `NoSuchKey`; empty for answers without a body.

 private:
  long status_;
  std::string code_;
};

/// For the words of an error.
struct Where {
  std::string bucket, endpoint, region;
  std::string origin_of_keys;  ///< `the environment (AWS_ACCESS_KEY_ID)`.
};

struct Answered {
  long status;
  std::string body;
  std::string
      region;  ///< Header x-amz-bucket-region: the one that the bucket is in, where it is another.
};

/// @param what was tried, after "cannot "
S3Error refusal(const std::string& what, const Answered& answer, const Where& where);

/// Whether a second try may go better.
bool is_retryable(long status, std::string_view code);

}  // namespace pipeline::s3

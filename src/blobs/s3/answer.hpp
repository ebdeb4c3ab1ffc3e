/// @file
/// Error messages and advice for the responses of S3 servers. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"

namespace pipeline::s3 {

/// Returns the text of the first element of this name, with entities decoded; empty if there is
/// none.
std::string xml_text(std::string_view xml, std::string_view element);

/// Returns the texts of all elements of this name, which are not nested, in order.
std::vector<std::string> xml_texts(std::string_view xml, std::string_view element);
/// The same as they are written, for elements with others in them.
std::vector<std::string_view> xml_elements(std::string_view xml, std::string_view element);

/// The server has refused a request. Codes:
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

/// Returns the error for a refused request. @param what completes the message "cannot ..."
S3Error refusal(const std::string& what, const Answered& answer, const Where& where);

/// Returns true if a retry can succeed.
bool is_retryable(long status, std::string_view code);

}  // namespace pipeline::s3

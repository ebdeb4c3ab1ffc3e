#include "blobs/s3/answer.hpp"

#include "blobs/error_document.hpp"
#include "core/diagnostic.hpp"
#include "core/timestamp.hpp"

namespace pipeline::blobs::s3 {
namespace {

/// Returns what the user can do about a refusal. @param code the server's error code, or empty
std::vector<std::string> advice_for(const std::string& code, const RefusedResponse& answer,
                                    const BucketIdentity& bucket) {
  const auto status = answer.status;
  auto region = answer.region;
  if (region.empty()) region = xml_text(answer.body, "Region");
  if (!region.empty() && region != bucket.region)
    return {"the bucket is in the region " + region + ", not " + bucket.region +
            ": write `region: " + region + "`"};
  if (code == "NoSuchBucket" || (status == 404 && code.empty()))
    return {"make the bucket (`aws s3 mb s3://" + bucket.name +
            "`), or correct `artifact_store.bucket`; if the server is not Amazon's, check "
            "`path_style`, too"};
  if (code == "InvalidAccessKeyId" || code == "SignatureDoesNotMatch")
    return {"the server does not accept the keys from " + bucket.origin_of_keys +
            ": set an access key of this server, and the secret key that belongs to it"};
  if (code == "ExpiredToken" || code == "InvalidToken")
    return {"the session token, from " + bucket.origin_of_keys + ", has expired: log in again"};
  if (code == "RequestTimeTooSkewed")
    return {
        "this machine's clock and the server's differ by more than 15 minutes: set the clock "
        "(`timedatectl`)"};
  if (code == "AccessDenied" || status == 403)
    return {"the keys, from " + bucket.origin_of_keys +
            ", need s3:GetObject, s3:PutObject, s3:DeleteObject, s3:AbortMultipartUpload on the "
            "bucket's prefix, and s3:ListBucket on the bucket"};
  if (status == 301 || status == 307 || code == "PermanentRedirect")
    return {"the bucket has another endpoint: write its `region`, or its `endpoint`"};
  if (code == "QuotaExceeded" || code == "XMinioStorageFull" || status == 507)
    return {"the store is full: remove objects, or raise its quota"};
  return {};
}

BlobError::Kind kind_of(long status, std::string_view code) {
  if (code == "NoSuchUpload") return BlobError::Kind::missing_upload;
  return status == 404 && code != "NoSuchBucket" ? BlobError::Kind::missing_blob
                                                 : BlobError::Kind::other;
}

}  // namespace

S3Error::S3Error(long status, std::string code, const std::string& message,
                 std::vector<std::string> advice)
    : BlobError(kind_of(status, code), message, std::move(advice)),
      status_(status),
      code_(std::move(code)) {}

S3Error refusal(const std::string& what, const RefusedResponse& answer,
                const BucketIdentity& bucket) {
  const auto code = xml_text(answer.body, "Code");
  auto words = xml_text(answer.body, "Message");
  if (words.empty()) words = "status " + std::to_string(answer.status);
  const auto place = "s3://" + bucket.name + " at " + bucket.endpoint;
  return {answer.status, code,
          "cannot " + what + " " + place + ": " +
              (code.empty() ? "" : core::printable(code.substr(0, 100)) + ": ") +
              core::printable(words.substr(0, 300)),
          advice_for(code, answer, bucket)};
}

std::optional<std::chrono::system_clock::time_point> parse_time(const std::string& text) {
  const auto time = core::parse_time(text);
  return time ? time : core::parse_time(text + "Z");
}

}  // namespace pipeline::blobs::s3

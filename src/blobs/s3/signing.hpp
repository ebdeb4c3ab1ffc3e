/// @file
/// Amazon's Signature Version 4 as used by S3:
/// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-authenticating-requests.html. Pure.
/// libcurl's implementation is not used, because in Debian 12's version (7.88) it encodes paths and
/// queries differently from servers.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>

namespace pipeline::blobs::s3 {

struct Keys {
  std::string id, secret;
  std::string session_token;  ///< Set for temporary keys.
};

/// The scope of a signature: where and when it is valid.
struct CredentialScope {
  std::string region;
  std::chrono::sys_seconds time;
};

/// Values by name, not encoded; a name without a value has an empty one.
using Query = std::map<std::string, std::string>;

/// The parts of a request that a signature covers.
struct SignedCall {
  std::string method;
  std::string host;  ///< The Host header: with the port, unless it is the scheme's default.
  std::string path;  ///< Not encoded: `/examplebucket/a b`.
  Query query;       ///< Not encoded.
  std::map<std::string, std::string> headers;     ///< Further headers to sign; names in lower case.
  std::string payload_hash = "UNSIGNED-PAYLOAD";  ///< Or the body's SHA-256 in hex.
};

/// Returns `a=b&c=`, encoded and in the order in which it is signed.
std::string query_text(const Query& query);

/// Returns the call's headers and those that sign it (`authorization`, `x-amz-date`,
/// `x-amz-content-sha256`, ...), except `host`, which the client sends by itself.
std::map<std::string, std::string> sign(const SignedCall& call, const Keys& keys,
                                        const CredentialScope& scope);

/// Signs many URLs of one host as presign() does. All have the same query and the same time.
class Presigner {
 public:
  Presigner(std::string method, std::string host, const Keys& keys, const CredentialScope& scope,
            std::chrono::seconds lifetime);
  /// Returns the query, which ends before the signature.
  std::string query() const { return query_ + "&X-Amz-Signature="; }
  /// Returns the signature that ends the URL of this path. @param path not encoded
  std::string signature(const std::string& path) const;

 private:
  std::string method_, headers_, query_, text_, key_;
};

/// Returns the query of a call with its signature, valid for anyone who has the URL until its
/// lifetime ends. Only the host header is signed.
std::string presign(const SignedCall& call, const Keys& keys, const CredentialScope& scope,
                    std::chrono::seconds lifetime);

}  // namespace pipeline::blobs::s3

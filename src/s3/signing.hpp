/// @file
/// Signature Version 4 of Amazon, as S3 wants it:
/// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-authenticating-requests.html. Pure.
/// libcurl has one of its own, which in Debian 12's version (7.88) encodes paths and queries other
/// than servers do.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>

namespace pipeline::s3 {

struct Keys {
  std::string id, secret;
  std::string session_token;  ///< Of temporary ones.
};

/// What a signature is good for, besides its request.
struct Scope {
  std::string region;
  std::chrono::sys_seconds time;
};

using Query =
    std::map<std::string, std::string>;  ///< Not encoded; a name without a value has an empty one.

struct SignedCall {
  std::string method;
  std::string host;  ///< As the header has it: with its port, unless that is the scheme's own.
  std::string path;  ///< Not encoded: `/examplebucket/a b`.
  Query query;       ///< Not encoded.
  std::map<std::string, std::string> headers;  ///< To be signed as well; names in lower case.
  std::string payload = "UNSIGNED-PAYLOAD";    ///< Or the body's SHA-256, in hex.
};

/// `a=b&c=`, encoded and in the order in which it is signed.
std::string query_text(const Query& query);

/// The call's headers, and those that sign it: `authorization`, `x-amz-date`,
/// `x-amz-content-sha256`, ...; all but `host`, which goes by itself.
std::map<std::string, std::string> sign(const SignedCall& call, const Keys& keys,
                                        const Scope& scope);

/// The query of a call that carries its signature with it, good for anybody until its lifetime is
/// over. It has no headers to sign but the host.
std::string presign(const SignedCall& call, const Keys& keys, const Scope& scope,
                    std::chrono::seconds lifetime);

}  // namespace pipeline::s3

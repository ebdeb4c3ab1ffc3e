#include "blobs/s3/signing.hpp"

#include <cctype>
#include <cstdio>
#include <utility>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "core/digest.hpp"
#include "net/url.hpp"

namespace pipeline::blobs::s3 {
namespace {

const std::string algorithm = "AWS4-HMAC-SHA256";

core::Digest hmac(std::string_view key, std::string_view text) {
  core::Digest code;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), code.bytes.data(),
       nullptr);
  return code;
}

std::string_view bytes_of(const core::Digest& digest) {
  return {reinterpret_cast<const char*>(digest.bytes.data()), digest.bytes.size()};
}

/// A time as signatures have it.
struct Stamp {
  std::string day, second;  ///< `20130524`, `20130524T000000Z`.
  explicit Stamp(std::chrono::sys_seconds time) {
    const auto midnight = std::chrono::floor<std::chrono::days>(time);
    const std::chrono::year_month_day date(midnight);
    const std::chrono::hh_mm_ss clock(time - midnight);
    char text[40];
    std::snprintf(text, sizeof text, "%04d%02u%02uT%02d%02d%02dZ", static_cast<int>(date.year()),
                  static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                  static_cast<int>(clock.hours().count()),
                  static_cast<int>(clock.minutes().count()),
                  static_cast<int>(clock.seconds().count()));
    second = text;
    day = second.substr(0, 8);
  }
};

std::string scope_text(const Stamp& stamp, const CredentialScope& scope) {
  return stamp.day + "/" + scope.region + "/s3/aws4_request";
}

std::string names_of(const std::map<std::string, std::string>& headers) {
  std::string names;
  for (const auto& [name, value] : headers) names += (names.empty() ? "" : ";") + name;
  return names;
}

core::Digest signing_key(const Keys& keys, const CredentialScope& scope, const Stamp& stamp) {
  auto key = hmac("AWS4" + keys.secret, stamp.day);
  for (const std::string_view part :
       {std::string_view(scope.region), std::string_view("s3"), std::string_view("aws4_request")})
    key = hmac(bytes_of(key), part);
  return key;
}

/// Returns the signature of a call whose headers include `host`.
std::string signature(const SignedCall& call, const Keys& keys, const CredentialScope& scope,
                      const Stamp& stamp) {
  std::string canonical =
      call.method + "\n" + net::url_encode(call.path, "/") + "\n" + query_text(call.query) + "\n";
  for (const auto& [name, value] : call.headers) canonical += name + ":" + value + "\n";
  canonical += "\n" + names_of(call.headers) + "\n" + call.payload_hash;
  const auto text = algorithm + "\n" + stamp.second + "\n" + scope_text(stamp, scope) + "\n" +
                    core::sha256(canonical).hex();
  return hmac(bytes_of(signing_key(keys, scope, stamp)), text).hex();
}

Query presigned_query(Query query, const Keys& keys, const CredentialScope& scope,
                      const Stamp& stamp, std::chrono::seconds lifetime) {
  query["X-Amz-Algorithm"] = algorithm;
  query["X-Amz-Credential"] = keys.id + "/" + scope_text(stamp, scope);
  query["X-Amz-Date"] = stamp.second;
  query["X-Amz-Expires"] = std::to_string(lifetime.count());
  query["X-Amz-SignedHeaders"] = "host";
  if (!keys.session_token.empty()) query["X-Amz-Security-Token"] = keys.session_token;
  return query;
}

}  // namespace

std::string query_text(const Query& query) {
  std::string text;
  for (const auto& [name, value] : query)
    text += (text.empty() ? "" : "&") + net::url_encode(name) + "=" + net::url_encode(value);
  return text;
}

std::map<std::string, std::string> sign(const SignedCall& call, const Keys& keys,
                                        const CredentialScope& scope) {
  const Stamp stamp(scope.time);
  auto whole = call;
  auto& headers = whole.headers;
  headers["host"] = call.host;
  headers["x-amz-date"] = stamp.second;
  headers["x-amz-content-sha256"] = call.payload_hash;
  if (!keys.session_token.empty()) headers["x-amz-security-token"] = keys.session_token;
  auto authorization = algorithm + " Credential=" + keys.id + "/" + scope_text(stamp, scope) +
                       ",SignedHeaders=" + names_of(headers) +
                       ",Signature=" + signature(whole, keys, scope, stamp);
  headers.erase("host");
  headers["authorization"] = std::move(authorization);
  return std::move(headers);
}

Presigner::Presigner(std::string method, std::string host, const Keys& keys,
                     const CredentialScope& scope, std::chrono::seconds lifetime)
    : method_(std::move(method)), headers_("host:" + std::move(host)) {
  const Stamp stamp(scope.time);
  query_ = query_text(presigned_query({}, keys, scope, stamp, lifetime));
  text_ = algorithm + "\n" + stamp.second + "\n" + scope_text(stamp, scope) + "\n";
  key_ = bytes_of(signing_key(keys, scope, stamp));
}

std::string Presigner::signature(const std::string& path) const {
  const auto canonical = method_ + "\n" + net::url_encode(path, "/") + "\n" + query_ + "\n" +
                         headers_ + "\n\nhost\nUNSIGNED-PAYLOAD";
  return hmac(key_, text_ + core::sha256(canonical).hex()).hex();
}

std::string presign(const SignedCall& call, const Keys& keys, const CredentialScope& scope,
                    std::chrono::seconds lifetime) {
  const Stamp stamp(scope.time);
  auto whole = call;
  whole.headers = {{"host", call.host}};
  whole.query = presigned_query(call.query, keys, scope, stamp, lifetime);
  return query_text(whole.query) + "&X-Amz-Signature=" + signature(whole, keys, scope, stamp);
}

}  // namespace pipeline::blobs::s3

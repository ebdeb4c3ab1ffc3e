// URLs of a bucket that allow a request without keys.
#include <chrono>
#include <utility>

#include "blobs/s3/bucket.hpp"
#include "net/url.hpp"

namespace pipeline::blobs::s3 {
namespace {

// The maximum lifetime that servers accept.
constexpr std::chrono::seconds pod_lifetime = std::chrono::days(7);

}  // namespace

async::Task<std::string> Bucket::presigned_request(std::string method, std::string key,
                                                   Query query) {
  const auto found = co_await keys();
  SignedCall to_sign;
  to_sign.method = std::move(method);
  to_sign.host = pod_address_.host();
  to_sign.path = pod_address_.path(settings_.prefix + key);
  to_sign.query = std::move(query);
  const CredentialScope scope{
      settings_.region, std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now())};
  co_return pod_address_.origin() + net::url_encode(to_sign.path, "/") + "?" +
      presign(to_sign, found.keys, scope, pod_lifetime);
}

/// Returns presigned URLs that differ in a number and their signatures.
/// @param sign returns the URL of a number
/// @param before_number the text before the number; empty: the number ends at the first
///        `after_number`
async::Task<PodAccess::NumberedUrls> Bucket::presigned_numbers(SignNumber sign,
                                                               std::string_view before_number,
                                                               char after_number, unsigned count) {
  NumberedUrls urls;
  constexpr std::string_view sign_name = "X-Amz-Signature=";
  for (unsigned each = 1; each <= count; ++each) {
    const auto number = std::to_string(each);
    const auto url = co_await sign(number);
    const auto begin = before_number.empty() ? url.find(after_number) - number.size()
                                             : url.find(before_number) + before_number.size(),
               end = url.find(after_number, begin),
               signature = url.find(sign_name) + sign_name.size();
    const auto before = url.substr(0, begin), after = url.substr(end, signature - end);
    // URLs that were signed in different seconds have no common part.
    if (each > 1 && (before != urls.before || after != urls.after)) {
      urls = {};
      each = 0;
      continue;
    }
    urls.before = before;
    urls.after = after;
    urls.signatures.push_back(url.substr(signature));
  }
  co_return urls;
}

async::Task<PodAccess::NumberedUrls> Bucket::presigned_parts(std::string key, std::string upload,
                                                             unsigned count) {
  const SignNumber sign = [this, &key, &upload](std::string number) {
    Query query{{"partNumber", std::move(number)}, {"uploadId", upload}};
    return presigned_request("PUT", key, std::move(query));
  };
  co_return co_await presigned_numbers(sign, "&partNumber=", '&', count);
}

async::Task<PodAccess::NumberedUrls> Bucket::presigned_series(Method method, std::string key,
                                                              unsigned count) {
  const SignNumber sign = [this, method, &key](std::string number) {
    return presigned(method, key + number);
  };
  co_return co_await presigned_numbers(sign, "", '?', count);
}

async::Task<PodAccess::KeyedUrls> Bucket::presigned_reads() {
  const auto found = co_await this->keys();
  const CredentialScope scope{
      settings_.region, std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now())};
  const Presigner signer("GET", pod_address_.host(), found.keys, scope, pod_lifetime);
  // The path of an empty key is the bucket's own, without a slash at its end.
  auto before_key = pod_address_.path(settings_.prefix + "k");
  before_key.pop_back();
  KeyedUrls urls;
  urls.before = pod_address_.origin() + net::url_encode(before_key, "/");
  urls.after = "?" + signer.query();
  urls.signature = [this, signer](const std::string& key) {
    return signer.signature(pod_address_.path(settings_.prefix + key));
  };
  co_return urls;
}

async::Task<std::string> Bucket::presigned(Method method, std::string key) {
  return presigned_request(method == Method::read ? "GET" : "PUT", std::move(key));
}

}  // namespace pipeline::blobs::s3

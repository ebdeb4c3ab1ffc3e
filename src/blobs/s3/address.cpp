#include "blobs/s3/address.hpp"

#include <algorithm>

#include "core/diagnostic.hpp"
#include "core/text.hpp"

namespace pipeline::blobs::s3 {

BucketAddress::BucketAddress(const std::string& endpoint, const std::string& bucket,
                             const std::string& region, std::optional<bool> path_style) {
  // The region becomes a part of the host's name: it must not make that the name of another server.
  const auto is_of_region = [](char c) { return core::is_alnum(c) || c == '-'; };
  if (endpoint.empty() && !core::all(region, is_of_region))
    throw core::InputError("'" + core::printable(region) + "' is not a region of Amazon",
                           "a region is a name such as `eu-west-1`; `endpoint` names a server");
  const std::string amazon = region.starts_with("cn-") ? ".amazonaws.com.cn" : ".amazonaws.com";
  const auto url = endpoint.empty() ? "https://s3." + region + amazon : endpoint;
  const auto separator = url.find("://");
  scheme_ = url.substr(0, std::min(separator, url.size()));
  auto rest = separator == url.npos ? "" : url.substr(separator + 3);
  while (rest.ends_with('/')) rest.pop_back();
  host_ = rest.substr(0, rest.find('/'));
  base_ = rest.substr(host_.size());
  const bool is_plain = core::all(rest, [](char c) {
    return core::is_alnum(c) || std::string_view("-._:[]/~").find(c) != std::string_view::npos;
  });
  if ((scheme_ != "https" && scheme_ != "http") || host_.empty() || !is_plain)
    throw core::InputError(
        "the endpoint of the remote store is not the address of a server: " + url,
        "write `https://HOST`, or `https://HOST:PORT`");
  // Clients omit the scheme's default port from the Host header.
  const std::string default_port = scheme_ == "https" ? ":443" : ":80";
  if (host_.ends_with(default_port)) host_.resize(host_.size() - default_port.size());
  is_amazon_ = host_.ends_with(".amazonaws.com") || host_.ends_with(".amazonaws.com.cn");
  // With TLS, the certificate of *.s3.REGION.amazonaws.com does not cover a bucket name with dots.
  const bool by_path = path_style.value_or(!is_amazon_ || bucket.find('.') != bucket.npos);
  if (by_path)
    base_ += "/" + bucket;
  else
    host_ = bucket + "." + host_;
}

}  // namespace pipeline::blobs::s3

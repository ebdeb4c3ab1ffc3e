#include "settings/artifact_store.hpp"

#include <algorithm>
#include <cctype>

#include <nlohmann/json.hpp>

namespace pipeline::settings {
namespace {

using nlohmann::json;

bool is_of(std::string_view text, std::string_view more) {
  return std::ranges::all_of(text, [&](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x80 && std::isalnum(byte)) || more.find(c) != more.npos;
  });
}

/// Returns true if each part of the prefix is a plain name. Keys become parts of URLs, and of file
/// paths on servers that keep objects in files.
bool is_prefix(std::string_view text) {
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('/', begin), text.size());
    const auto part = text.substr(begin, end - begin);
    if (part.empty() || part == "." || part == ".." || !is_of(part, "-_.=+")) return false;
    begin = end + 1;
  }
  return true;
}

}  // namespace

bool read_bucket(std::string_view text, ArtifactStoreSettings& store) {
  constexpr std::string_view scheme = "s3://";
  if (!text.starts_with(scheme)) return false;
  text.remove_prefix(scheme.size());
  while (text.ends_with('/')) text.remove_suffix(1);
  const auto slash = std::min(text.find('/'), text.size());
  const auto bucket = text.substr(0, slash), prefix = text.substr(std::min(slash + 1, text.size()));
  // https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html. `_` and capitals
  // are accepted too: AWS once allowed them, and other servers still do.
  if (bucket.size() < 3 || bucket.size() > 63 || !is_of(bucket, "-._") || bucket.front() == '.' ||
      bucket.front() == '-')
    return false;
  if (!is_prefix(prefix)) return false;
  store.bucket = bucket;
  store.prefix = prefix.empty() ? "" : std::string(prefix) + "/";
  return true;
}

std::string url_of(const ArtifactStoreSettings& store) {
  auto url = "s3://" + store.bucket + "/" + store.prefix;
  url.pop_back();
  return url;
}

json to_json(const ArtifactStoreSettings& store) {
  if (!store.is_given()) return nullptr;
  json kept{{"bucket", store.bucket},
            {"prefix", store.prefix},
            {"endpoint", store.endpoint},
            {"pod_endpoint", store.pod_endpoint},
            {"region", store.region},
            {"certificate_authority", store.certificate_authority.string()},
            {"aws_profile", store.aws_profile}};
  if (store.path_style) kept["path_style"] = *store.path_style;
  return kept;
}

ArtifactStoreSettings artifact_store_of(const json& kept) {
  ArtifactStoreSettings store;
  if (!kept.is_object()) return store;
  store.bucket = kept.value("bucket", "");
  store.prefix = kept.value("prefix", "");
  store.endpoint = kept.value("endpoint", "");
  store.pod_endpoint = kept.value("pod_endpoint", "");
  store.region = kept.value("region", "");
  store.certificate_authority = kept.value("certificate_authority", "");
  store.aws_profile = kept.value("aws_profile", "");
  if (kept.contains("path_style")) store.path_style = kept.value("path_style", true);
  return store;
}

}  // namespace pipeline::settings

#include "blobs/s3/settings.hpp"

#include <algorithm>
#include <array>

#include "core/text.hpp"

namespace pipeline::blobs::s3 {
namespace {

constexpr const char *path_style = "path_style", *certificate_authority = "certificate_authority",
                     *verify = "verify";

/// The options that are texts.
struct TextOption {
  const char* name;
  Option::Type type;
  std::string BucketSettings::*member;
};
constexpr std::array text_options{
    TextOption{"endpoint", Option::Type::server, &BucketSettings::endpoint},
    TextOption{"pod_endpoint", Option::Type::server, &BucketSettings::pod_endpoint},
    TextOption{"region", Option::Type::text, &BucketSettings::region},
    TextOption{"aws_profile", Option::Type::text, &BucketSettings::aws_profile}};

/// Returns true if the text consists of letters, digits and the characters of `more`.
bool has_only(std::string_view text, std::string_view more) {
  return core::all(text, [&](char c) { return core::is_alnum(c) || more.find(c) != more.npos; });
}

/// Returns true if each part of the prefix is a plain name. Keys become parts of URLs, and of file
/// paths on servers that keep objects in files.
bool is_prefix(std::string_view text) {
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('/', begin), text.size());
    const auto part = text.substr(begin, end - begin);
    if (part.empty() || part == "." || part == ".." || !has_only(part, "-_.=+")) return false;
    begin = end + 1;
  }
  return true;
}

}  // namespace

std::vector<Option> bucket_options() {
  std::vector<Option> options{{path_style, Option::Type::boolean},
                              {certificate_authority, Option::Type::file},
                              {verify, Option::Type::choice, {"driver", "consumer"}}};
  for (const auto& text : text_options) options.push_back({text.name, text.type});
  return options;
}

bool read_bucket(std::string_view text, BucketSettings& settings) {
  if (!text.starts_with(scheme)) return false;
  text.remove_prefix(scheme.size());
  while (text.ends_with('/')) text.remove_suffix(1);
  const auto slash = std::min(text.find('/'), text.size());
  const auto bucket = text.substr(0, slash), prefix = text.substr(std::min(slash + 1, text.size()));
  // https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html. `_` and capitals
  // are accepted too: AWS once allowed them, and other servers still do.
  if (bucket.size() < 3 || bucket.size() > 63 || !has_only(bucket, "-._") ||
      bucket.front() == '.' || bucket.front() == '-')
    return false;
  if (!is_prefix(prefix)) return false;
  settings.bucket = bucket;
  settings.prefix = prefix.empty() ? "" : std::string(prefix) + "/";
  return true;
}

std::string url_of(const BucketSettings& settings) {
  auto url = std::string(scheme) + settings.bucket + "/" + settings.prefix;
  url.pop_back();
  return url;
}

BucketSettings bucket_settings(const settings::RemoteStoreSettings& store) {
  BucketSettings settings;
  if (!read_bucket(store.url, settings)) return settings;
  for (const auto& text : text_options) settings.*text.member = store.option(text.name);
  settings.certificate_authority = store.option(certificate_authority);
  settings.verify = store.option(verify);
  if (const auto by_path = store.option(path_style); !by_path.empty())
    settings.path_style = by_path == "true";
  return settings;
}

settings::RemoteStoreSettings store_settings(const BucketSettings& settings) {
  settings::RemoteStoreSettings store;
  store.url = url_of(settings);
  for (const auto& text : text_options) store.options[text.name] = settings.*text.member;
  store.options[certificate_authority] = settings.certificate_authority.string();
  store.options[verify] = settings.verify;
  if (settings.path_style) store.options[path_style] = *settings.path_style ? "true" : "false";
  std::erase_if(store.options, [](const auto& option) { return option.second.empty(); });
  return store;
}

}  // namespace pipeline::blobs::s3

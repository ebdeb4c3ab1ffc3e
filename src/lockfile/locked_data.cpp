#include "lockfile/locked_data.hpp"

#include <algorithm>

#include "core/digest.hpp"

namespace pipeline::lockfile {

std::string data_address(std::string_view url, std::string_view version) {
  url = url.substr(0, url.find('#'));
  const auto query = url.starts_with("s3://") ? url.npos : url.find('?');
  std::string address(url.substr(0, query));
  if (query != url.npos) address += "?" + core::sha256(url.substr(query + 1)).hex().substr(0, 12);
  if (!version.empty()) address.append("?version=").append(version);
  return address;
}

bool is_same_content(const LockedData& one, const LockedData& other) {
  if (one.files != other.files) return false;
  if (!one.version.empty() && !other.version.empty()) return one.version == other.version;
  if (!one.etag.empty() && !other.etag.empty()) return one.etag == other.etag;
  const bool has_sizes = one.size && other.size;
  return !one.modified.empty() && one.modified == other.modified &&
         (!has_sizes || one.size == other.size);
}

bool is_plain_text(std::string_view text) {
  return std::ranges::none_of(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

}  // namespace pipeline::lockfile

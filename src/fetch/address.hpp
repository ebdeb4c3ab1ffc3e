/// @file
/// Addresses of data: `https://...`, `http://...`, `s3://BUCKET/KEY`, `s3://BUCKET/FOLDER/`. Only
/// texts are examined here; no server is asked.
#pragma once

#include <string>
#include <utility>

namespace pipeline::fetch {

struct DataAddress {
  std::string url;          ///< The URL without its fragment.
  std::string bucket, key;  ///< Parts of `s3://...`; else empty.
  std::string version;      ///< Version id of the object to read; empty: the current one.
  bool is_s3() const { return !bucket.empty(); }
  /// Returns true if the address stands for all objects below a key.
  bool is_folder() const { return is_s3() && (key.empty() || key.ends_with('/')); }
  /// Returns the server: scheme, host and port, or the bucket.
  std::string server() const;
};

/// Takes the URL apart. @param version version id of an object, or empty
DataAddress address_of(const std::string& url, const std::string& version);

/// Returns true if both URLs have the same host and port, or the same host and each the default
/// port of its scheme.
bool has_same_host(const std::string& one, const std::string& other);

/// Returns a URL's host, without the brackets of IPv6, and its port, by default that of the scheme.
std::pair<std::string, std::string> host_and_port(const std::string& url);

/// Returns true for a URL whose host is this machine, a link-local address, or a name of cloud
/// services.
bool is_local(const std::string& url);

/// Returns the URL for messages: without its query, which may hold a signature, and its fragment.
std::string without_query(const std::string& url);

/// Returns the target of a redirection. Returns an empty text for a redirection that must not be
/// followed: from https to http, to an address with a login, from another host to this machine or a
/// link-local address, and to a path that does not begin with `/`.
/// @param location the header Location of the response
std::string redirected(const std::string& url, const std::string& location);

/// Returns true if the key of an object is a path that can be made in a folder.
bool is_safe_path(const std::string& path);

}  // namespace pipeline::fetch

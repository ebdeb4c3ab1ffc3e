#include "fetch/address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>
#include <string_view>

#include "core/text.hpp"
#include "core/utf8.hpp"
#include "net/local_address.hpp"

namespace pipeline::fetch {
namespace {

constexpr std::string_view s3_scheme = "s3://";

/// Returns `[LOGIN@]HOST[:PORT]` of a URL.
std::string_view authority_of(std::string_view url) {
  const auto scheme = url.find("://");
  if (scheme == url.npos) return {};
  url.remove_prefix(scheme + 3);
  return url.substr(0, url.find_first_of("/?#"));
}

/// Returns the text with each `%HH` replaced by its byte.
std::string percent_decoded(std::string_view text) {
  const auto is_hex_digit = [](unsigned char c) { return std::isxdigit(c) != 0; };
  std::string decoded;
  while (!text.empty()) {
    const auto is_encoded =
        text.size() >= 3 && text.front() == '%' && is_hex_digit(text[1]) && is_hex_digit(text[2]);
    const std::string digits(is_encoded ? text.substr(1, 2) : std::string_view());
    decoded += is_encoded ? static_cast<char>(std::stoi(digits, nullptr, 16)) : text.front();
    text.remove_prefix(is_encoded ? 3 : 1);
  }
  return decoded;
}

/// Returns the host of `[LOGIN@]HOST[:PORT]` in lower case, without percent encoding and without a
/// dot at its end; for IPv6 without the last bracket.
std::string host_of(std::string_view authority) {
  if (const auto login_end = authority.rfind('@'); login_end != authority.npos)
    authority.remove_prefix(login_end + 1);
  const auto end = authority.find(authority.starts_with('[') ? ']' : ':');
  auto host = core::lower(percent_decoded(authority.substr(0, end)));
  if (host.ends_with('.')) host.pop_back();
  return host;
}

/// Returns the IP address that a host is written as, for IPv4 in any notation that a resolver
/// accepts, such as 0x7f.1 and 2130706433; nothing for a name.
/// @param host what host_of() returns
std::optional<sockaddr_storage> address_in(const std::string& host) {
  sockaddr_storage storage{};
  if (host.starts_with('[')) {
    // If the text is not an address, this stays `::`, which counts as local.
    sockaddr_in6 address{.sin6_family = AF_INET6};
    ::inet_pton(AF_INET6, host.substr(1, host.find('%') - 1).c_str(), &address.sin6_addr);
    std::memcpy(&storage, &address, sizeof address);
    return storage;
  }
  sockaddr_in address{.sin_family = AF_INET};
  if (::inet_aton(host.c_str(), &address.sin_addr) == 0) return std::nullopt;
  std::memcpy(&storage, &address, sizeof address);
  return storage;
}

/// Returns true if the host is a name or an address of this machine, or one at which clouds answer
/// their virtual machines, such as `metadata`.
bool is_local_host(std::string_view authority) {
  const auto host = host_of(authority);
  const auto address = address_in(host);
  if (address) return net::is_local_address(reinterpret_cast<const sockaddr&>(*address));
  return host == "localhost" || host.ends_with(".localhost") || host.ends_with(".internal") ||
         host == "metadata";
}

/// Returns a URL's authority in lower case, without the port if that is the default of its scheme.
std::string without_default_port(const std::string& url) {
  auto authority = authority_of(url);
  const std::string_view port = url.starts_with("https://") ? ":443" : ":80";
  if (authority.ends_with(port)) authority.remove_suffix(port.size());
  return core::lower(authority);
}

}  // namespace

std::string DataAddress::server() const {
  if (is_s3()) return std::string(s3_scheme) + bucket;
  return url.substr(0, url.find("://") + 3) + std::string(authority_of(url));
}

DataAddress address_of(const std::string& url, const std::string& version) {
  DataAddress address{.url = url, .bucket = {}, .key = {}, .version = version};
  if (!url.starts_with(s3_scheme)) {
    address.url.resize(std::min(url.size(), url.find('#')));
    return address;
  }
  const auto end = url.find('/', s3_scheme.size());
  address.bucket = url.substr(s3_scheme.size(), end - s3_scheme.size());
  if (end != url.npos) address.key = url.substr(end + 1);
  return address;
}

bool is_local(const std::string& url) {
  return !url.starts_with(s3_scheme) && is_local_host(authority_of(url));
}

bool has_same_host(const std::string& one, const std::string& other) {
  return without_default_port(one) == without_default_port(other);
}

std::pair<std::string, std::string> host_and_port(const std::string& url) {
  const std::string authority(authority_of(url));
  const auto end = authority.starts_with('[') ? authority.find(']') + 1 : authority.find(':');
  auto host = authority.substr(0, end);
  const auto colon = end < authority.size() ? authority.find(':', end) : authority.npos;
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  return {host, colon != authority.npos       ? authority.substr(colon + 1)
                : url.starts_with("https://") ? "443"
                                              : "80"};
}

std::string without_query(const std::string& url) {
  return url.starts_with(s3_scheme) ? url : url.substr(0, url.find_first_of("?#"));
}

std::string redirected(const std::string& url, const std::string& location) {
  const auto path = url.find('/', url.find("://") + 3);
  std::string target;
  if (location.starts_with("https://"))
    target = location;
  else if (location.starts_with("http://"))
    target = url.starts_with("https://") ? "" : location;
  else if (location.starts_with("//"))
    target = url.substr(0, url.find("://") + 1) + location;
  else if (location.starts_with('/'))
    target = url.substr(0, path) + location;
  target.resize(std::min(target.size(), target.find('#')));
  const auto host = authority_of(target);
  // A login, and a name in percent encoding, are refused.
  if (host.find_first_of("@%") != host.npos || host.empty()) return {};
  if (std::ranges::any_of(target, [](char c) { return c <= 0x20 || c >= 0x7f; })) return {};
  return is_local_host(host) && !is_local_host(authority_of(url)) ? std::string() : target;
}

bool is_safe_path(const std::string& path) {
  constexpr std::size_t max_key = 1024, max_name = 255;  // Limits of S3, and of file systems.
  if (path.empty() || path.size() > max_key || !core::is_utf8(path)) return false;
  if (std::ranges::any_of(path,
                          [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }))
    return false;
  return std::ranges::all_of(core::split(path, '/'), [](std::string_view part) {
    return !part.empty() && part != "." && part != ".." && part.size() <= max_name;
  });
}

}  // namespace pipeline::fetch

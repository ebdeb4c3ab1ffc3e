#include "serve/guard.hpp"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <random>

#include "core/text.hpp"

namespace pipeline::serve {
namespace {

constexpr std::size_t token_digits = 32;

/// Compares in equal time for all texts of the right length, so that no digit can be guessed alone.
bool is_equal(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  return *static_cast<volatile unsigned char*>(&difference) == 0;
}

/// Returns the header Host without its port and brackets; empty if the text is not a host.
std::string_view without_port(std::string_view host) {
  const bool has_brackets = host.starts_with('[');
  const auto end = std::min(host.find(has_brackets ? ']' : ':'), host.size());
  if (has_brackets && end == host.size()) return {};
  const auto port = host.substr(has_brackets ? end + 1 : end);
  if (!port.empty() && (port[0] != ':' || !core::all(port.substr(1), core::is_digit))) return {};
  return has_brackets ? host.substr(1, end - 1) : host.substr(0, end);
}

std::string machine_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, sizeof name) == 0 ? name : std::string();
}

/// Compares names of hosts without regard to case: browsers send lower case, whatever the user
/// wrote.
bool is_same_name(std::string_view a, std::string_view b) {
  return core::lower(a) == core::lower(b);
}

}  // namespace

std::string_view bearer_of(std::string_view authorization) {
  constexpr std::string_view bearer = "Bearer ";
  return authorization.starts_with(bearer) ? core::trimmed(authorization.substr(bearer.size()), " ")
                                           : std::string_view();
}

std::string new_token() {
  std::random_device random;  // getrandom(2) or the processor's generator.
  std::string token;
  while (token.size() < token_digits) token += "0123456789abcdef"[random() % 16];
  return token;
}

bool is_ip_address(std::string_view text) {
  const std::string address(text);
  unsigned char bytes[sizeof(in6_addr)];
  if (address.find('\0') != address.npos) return false;  // inet_pton() would ignore the rest.
  return ::inet_pton(AF_INET, address.c_str(), bytes) == 1 ||
         ::inet_pton(AF_INET6, address.c_str(), bytes) == 1;
}

bool is_loopback(std::string_view address) {
  return address == "localhost" || address == "::1" ||
         (address.starts_with("127.") && is_ip_address(address));
}

Guard::Guard(std::string token, std::string host)
    : token_(std::move(token)), host_(std::move(host)) {}

/// Returns true for names that no other site can have. Another site can make its own name resolve
/// to this address (DNS rebinding); the browser then sends that name. The port may differ, as with
/// `ssh -L`.
bool Guard::is_own_name(std::string_view host) const {
  const auto name = without_port(host);
  if (name.empty()) return false;
  if (is_loopback(name)) return true;
  if (is_loopback(host_)) return false;
  return is_ip_address(name) || is_same_name(name, host_) || is_same_name(name, machine_name());
}

bool Guard::has_token(const RequestOrigin& origin) const {
  if (is_equal(bearer_of(origin.authorization), token_)) return true;
  return !origin.changes && is_equal(origin.token, token_);
}

Verdict Guard::judge(const RequestOrigin& origin) const {
  if (!is_own_name(origin.host)) return Verdict::wrong_host;
  // A page of another origin may link to a page; all its other requests are refused.
  const bool is_foreign = origin.fetch_site == "cross-site" || origin.fetch_site == "same-site";
  if (is_foreign && (origin.changes || origin.fetch_mode != "navigate")) return Verdict::cross_site;
  return has_token(origin) ? Verdict::allowed : Verdict::no_token;
}

}  // namespace pipeline::serve

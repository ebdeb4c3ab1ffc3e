/// @file
/// Accepts only requests of this user's browser, which have the token that `pipe serve` printed.
#pragma once

#include <string>
#include <string_view>

namespace pipeline::serve {

/// The headers that identify the origin of a request.
struct RequestOrigin {
  std::string_view host;           ///< Host.
  std::string_view authorization;  ///< Authorization.
  std::string_view fetch_site;     ///< Sec-Fetch-Site.
  std::string_view fetch_mode;     ///< Sec-Fetch-Mode.
  std::string_view token;          ///< Parameter `token` of the query.
  /// Whether the request changes something. Such a request must have the token in its header, which
  /// a form or link of another site cannot send.
  bool changes = false;
};

enum class Verdict { allowed, wrong_host, cross_site, no_token };

/// Returns the credential of a header `Authorization: Bearer CREDENTIAL`; empty for any other text.
std::string_view bearer_of(std::string_view authorization);

/// Returns 32 random digits.
std::string new_token();

class Guard {
 public:
  /// @param host the address that the server is bound to
  Guard(std::string token, std::string host);

  /// Returns the reason for which a request is refused, or Verdict::allowed.
  Verdict judge(const RequestOrigin& origin) const;
  const std::string& token() const { return token_; }

 private:
  bool is_own_name(std::string_view host) const;
  bool has_token(const RequestOrigin& origin) const;
  std::string token_, host_;
};

/// Returns true for an IPv4 or IPv6 address, which no name server can redirect.
bool is_ip_address(std::string_view text);
/// Returns true for an address that only processes of this machine can reach.
bool is_loopback(std::string_view address);

}  // namespace pipeline::serve

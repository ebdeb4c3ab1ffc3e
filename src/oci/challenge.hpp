/// @file
/// Reads from the header WWW-Authenticate which login a registry asks for (RFC 9110, distribution's
/// token specification). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "net/http.hpp"

namespace pipeline::oci {

struct Challenge {
  bool is_bearer = false;             ///< Whether the scheme is Bearer; otherwise it is Basic.
  std::string realm, service, scope;  ///< For Bearer; the realm is the address that gives tokens.
};

/// Reads one value of the header; nothing for another scheme than Bearer and Basic.
std::optional<Challenge> read_challenge(std::string_view value);

/// Returns the challenge of a refusal: Bearer before Basic.
std::optional<Challenge> challenge_of(const net::Response& response);

}  // namespace pipeline::oci

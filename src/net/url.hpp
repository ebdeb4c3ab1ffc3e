/// @file
/// Encodes texts for URLs. Pure.
#pragma once

#include <string>
#include <string_view>

namespace pipeline::net {

/// Encodes the text for a URL's path or query: all characters but letters, digits, `-._~` and those
/// of `keep` become %XX (RFC 3986).
std::string url_encode(std::string_view text, std::string_view keep = {});

}  // namespace pipeline::net

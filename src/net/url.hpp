/// @file
/// Texts in URLs. Pure.
#pragma once

#include <string>
#include <string_view>

namespace pipeline::net {

/// The text for a URL's path or query: all but letters, digits and `-._~` as %XX (RFC 3986); with
/// `keep`, those characters too.
std::string url_encode(std::string_view text, std::string_view keep = {});

}  // namespace pipeline::net

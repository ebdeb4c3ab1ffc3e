/// @file
/// Addresses (URLs) in texts of users.
#pragma once

#include <string>

namespace pipeline::core {

/// Returns the text without the user names and passwords of its addresses: `https://host/x` for
/// `https://user:token@host/x`. A password may contain another `@`. User names of ssh stay: they
/// are not secret, and ssh needs them.
std::string without_credentials(std::string text);

/// Returns the text with `*` in place of each character of the logins and queries of its addresses,
/// because queries may hold signatures. The length stays the same.
std::string masked_addresses(std::string text);

}  // namespace pipeline::core

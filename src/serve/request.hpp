/// @file
/// A browser's request.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pipeline::serve {

/// The target of a request, decoded, and what a POST request has besides.
struct PageRequest {
  std::string path;
  std::vector<std::pair<std::string, std::string>> query;
  bool is_post = false;
  bool has_token = false;  ///< The request comes from the user who has started the server.
  std::string bearer;  ///< Credential of the header Authorization: the token, or a question's key.
  std::string peer;    ///< The network address that the request came from.
  std::string body;

  /// Returns the first value of the name; empty if there is none.
  const std::string& value(std::string_view name) const;
  /// Returns all values of the name.
  std::vector<std::string> values(std::string_view name) const;
  /// Returns the first value of the name as a number, or `otherwise` if there is none. Throws
  /// InputError if the value is not a whole number.
  std::int64_t number(std::string_view name, std::int64_t otherwise) const;
};

/// Parses a target; returns nothing if it is not a path, or is not encoded correctly.
std::optional<PageRequest> parse_target(std::string_view target);

}  // namespace pipeline::serve

/// @file
/// What a browser asks for.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pipeline::serve {

/// The target of a GET or HEAD request, decoded.
struct PageRequest {
  std::string path;
  std::vector<std::pair<std::string, std::string>> query;

  /// Returns the first value of the name; empty if there is none.
  const std::string& value(std::string_view name) const;
  std::vector<std::string> values(std::string_view name) const;
  /// Returns a value that is a number; `otherwise` if it is missing. Throws InputError for any
  /// other text.
  std::int64_t number(std::string_view name, std::int64_t otherwise) const;
};

/// Returns nothing for a target that is not a path, or that is not encoded correctly.
std::optional<PageRequest> parse_target(std::string_view target);

}  // namespace pipeline::serve

/// @file
/// Parses JSON from outside: texts of steps, engines, clusters, buckets and other programs. All
/// such JSON is parsed here, because a small but deeply nested text can crash the program:
/// nlohmann's library copies, compares and prints values recursively, one stack frame for each
/// level of nesting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace pipeline::core {

/// Limits of a text.
struct JsonLimits {
  std::size_t bytes = std::size_t{64} << 20;
  unsigned depth = 500;
};

/// Returns true if the text is within the size limit and, where it is JSON, within the nesting
/// limit.
bool is_within(std::string_view text, JsonLimits limits);
/// Returns the value; a discarded value if the text is not JSON or exceeds the limits.
nlohmann::json parse_json(std::string_view text, JsonLimits limits = {});

}  // namespace pipeline::core

/// @file
/// JSON from outside: what steps, engines, clusters, buckets and other programs write. Everything
/// of the kind is parsed here, since a text may be small and yet end the program: nlohmann's
/// library copies, compares and prints values by recursion, one level of the stack for each level
/// of the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace pipeline::core {

/// What a text may be at most.
struct JsonLimits {
  std::size_t bytes = std::size_t{64} << 20;
  unsigned depth = 500;
};

/// True if the text is not longer than that and, as far as it is JSON, not nested deeper.
bool is_within(std::string_view text, JsonLimits limits);
/// The value; a discarded one for what is no JSON or exceeds the limits.
nlohmann::json parse_json(std::string_view text, JsonLimits limits = {});

}  // namespace pipeline::core

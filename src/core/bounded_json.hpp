/// @file
/// Parses JSON from outside: texts of steps, engines, clusters, buckets and other programs. All
/// such JSON is parsed here, because a small but deeply nested text can crash the program:
/// nlohmann's library copies, compares and prints values recursively, one stack frame for each
/// level of nesting.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace pipeline::core {

/// Limits of a text.
struct JsonLimits {
  std::size_t bytes = std::size_t{64} << 20;
  unsigned depth = 500;
};

/// Returns true if the text is within the size limit and, as JSON, within the nesting limit.
bool is_within(std::string_view text, JsonLimits limits);
/// Returns the value; a discarded value if the text is not JSON, exceeds the limits, or may have
/// more than four million values.
nlohmann::json parse_json(std::string_view text, JsonLimits limits = {});
/// Returns why parse_json() discards the text, for messages: `the fault is in line 3`.
std::string fault_of_json(std::string_view text, JsonLimits limits = {});

/// Returns the value if it is an integer from `min` to `max`.
/// @throws nlohmann::json::exception if it is not
std::int64_t integer_within(const nlohmann::json& value, std::int64_t min, std::int64_t max);
/// Returns the value if it is an integer from 0 to `max`.
/// @throws nlohmann::json::exception if it is not
std::uint64_t unsigned_within(const nlohmann::json& value, std::uint64_t max);

/// Returns the value if it is an integer of this type. `nlohmann::json::get` converts every number:
/// it makes -1 the largest unsigned integer, and to convert 1e91 is undefined.
/// @throws nlohmann::json::exception if it is not
template <std::integral Integer>
Integer integer_of(const nlohmann::json& value) {
  using Limits = std::numeric_limits<Integer>;
  if constexpr (std::signed_integral<Integer>)
    return static_cast<Integer>(integer_within(value, Limits::min(), Limits::max()));
  else
    return static_cast<Integer>(unsigned_within(value, Limits::max()));
}

}  // namespace pipeline::core

/// @file
/// Reads the usual form of a line that reports a metric. A training may print a million such lines,
/// and a JSON parser takes twenty times as long for each.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pipeline::model {

/// A metric that a line reports. The texts are views of the line.
struct UsualMetric {
  std::string_view name;    ///< ASCII without a backslash; may be empty.
  std::string_view number;  ///< The value as the line has it.
  double value = 0;
  std::optional<std::int64_t> step;
};

/// Reads `@pipe {"metric": "loss", "value": 0.25, "step": 3}`: these members in any order, with or
/// without `step`, with any number of spaces. Returns the same as the JSON parser would, or nothing
/// for a line that only the JSON parser can read.
std::optional<UsualMetric> read_usual_metric(std::string_view line);

}  // namespace pipeline::model

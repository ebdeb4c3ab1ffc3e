/// @file
/// Reads the usual form of a line that reports a metric without a JSON parser, which takes twenty
/// times as long: a training may report a million of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pipeline::model {

/// Parts of the line.
struct UsualMetric {
  std::string_view name;  ///< ASCII without a backslash; empty names are possible.
  std::string_view number;
  double value = 0;
  std::optional<std::int64_t> step;
};

/// Reads `@pipe {"metric": "loss", "value": 0.25, "step": 3}`: these members in any order, `step`
/// or none, with spaces between words. Returns the same as the JSON parser, or nothing for lines
/// that are left to it.
std::optional<UsualMetric> read_usual_metric(std::string_view line);

}  // namespace pipeline::model

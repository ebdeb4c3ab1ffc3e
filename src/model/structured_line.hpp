/// @file
/// Lines of a step's log that programs can read: `@pipe {"level": "info", "message": "epoch done",
/// "fields": {"loss": 0.25}}`, `@pipe {"progress": 0.5}`, `@pipe {"metric": "loss", "value":
/// 0.25}`. Steps in any language can print them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace pipeline::model {

inline constexpr std::string_view structured_prefix = "@pipe {";

/// Returns the object of a line that programs can read; nothing for any other line.
std::optional<nlohmann::json> parse_structured(std::string_view line);
/// A value that a line reports.
struct ReportedMetric {
  std::string name;
  double value;  ///< May be infinite or NaN.
  std::optional<std::int64_t> step;
  bool has_more;  ///< Whether the line has other members, such as a message.
};
/// Returns the metric of `@pipe {"metric": "loss", "value": 0.25, "step": 3}`; nothing for any
/// other line, and for a name or value that cannot be stored. JSON has no NaN: Python's `NaN` and
/// `Infinity` are accepted, and the texts "nan", "inf" and "-inf".
std::optional<ReportedMetric> parse_metric(std::string_view line);
/// Returns the text with Python's `NaN`, `Infinity` and `-Infinity` in quotes, as JSON needs.
std::string with_quoted_numbers(std::string_view text);
/// Returns the number that a metric's JSON value stands for: a number, or one of the texts "nan",
/// "inf" and "-inf"; nothing for other values.
std::optional<double> metric_value(const nlohmann::json& value);
/// Returns what is wrong with a line that begins with structured_prefix and cannot be read, as the
/// end of a sentence; empty for any other line.
std::string problem_of_report(std::string_view line);
/// Returns true for a valid name of a metric: 1 to 200 bytes of UTF-8, no control characters.
bool is_metric_name(std::string_view name);
/// Formats the line for people: `info: epoch done loss=0.25`, `50 %`, `loss = 0.25`; any other line
/// stays as it is.
std::string shown_line(std::string_view line);

}  // namespace pipeline::model

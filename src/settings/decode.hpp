/// @file
/// Reads values of a document and reports errors that name what was expected and what was found.
/// Used for settings and for the rest of the pipeline file.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "settings/formats.hpp"
#include "settings/settings.hpp"

namespace pipeline::settings {

void report(Diagnostics& diagnostics, std::string code, std::string message, core::Span span,
            std::vector<std::string> notes = {}, std::string suggestion = {});
/// Reports `KEY must be EXPECTED, not FOUND`.
void report_type(Diagnostics& diagnostics, std::string_view key, std::string_view expected,
                 const core::Value& found);
/// A key that another product has, and the advice for a user who writes that key.
struct OtherName {
  std::string_view key;
  const char* advice;
};
/// Reports each member of `map` whose key is not among `allowed`.
/// @param place a name of the map for the message, such as `docker settings`
/// @param others their advice is given instead of the most similar key
void report_unknown_keys(const core::Value& map, std::span<const std::string> allowed,
                         std::string_view place, Diagnostics& diagnostics,
                         std::span<const OtherName> others = {});
/// Describes the value for a message: `a list`, `the number 5`, `the text 'x'`.
std::string describe(const core::Value& value);

/// Converts the scalar by YAML 1.2's core schema to a boolean, number, text or null. Returns
/// nothing for numbers that JSON cannot represent (too large, .inf, .nan).
std::optional<nlohmann::json> scalar_to_json(const core::Value& scalar);
/// Converts a text outside of any document, such as an option's value, by the same rules.
std::optional<nlohmann::json> plain_to_json(std::string_view text);

// Each function reads `value`, the member called `key`. On a wrong type or content it reports an
// error and returns nothing.
std::optional<bool> read_bool(std::string_view key, const core::Value& value,
                              Diagnostics& diagnostics);
/// Accepts numbers and booleans, too, in the spelling of the document.
std::optional<std::string> read_text(std::string_view key, const core::Value& value,
                                     const Format& format, Diagnostics& diagnostics);
std::optional<std::vector<std::string>> read_texts(std::string_view key, const core::Value& value,
                                                   const Format& format, Diagnostics& diagnostics);
std::optional<StringMap> read_map(std::string_view key, const core::Value& value,
                                  const Format& key_format, const Format& format,
                                  Diagnostics& diagnostics);
/// The permitted numbers, `min` and `max` included.
struct CountRange {
  unsigned min = 0, max = 1'000'000;
};
std::optional<unsigned> read_count(std::string_view key, const core::Value& value,
                                   Diagnostics& diagnostics, CountRange range = {});
std::optional<double> read_number(std::string_view key, const core::Value& value,
                                  const NumberFormat& format, Diagnostics& diagnostics);
std::optional<Bytes> read_bytes(std::string_view key, const core::Value& value,
                                Diagnostics& diagnostics);
/// Reads `x2`, `x1.5`: a number above 1 and at most 1000.
std::optional<Factor> read_factor(std::string_view key, const core::Value& value,
                                  Diagnostics& diagnostics);
std::optional<Duration> read_duration(std::string_view key, const core::Value& value,
                                      Diagnostics& diagnostics);
/// Returns true if the value is a map; reports an error otherwise.
bool expect_map(std::string_view key, const core::Value& value, Diagnostics& diagnostics);

}  // namespace pipeline::settings

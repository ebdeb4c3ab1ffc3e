/// @file
/// Reading values of a document, with errors that say what was expected and what was found. Used
/// for settings and for the pipeline file around them.
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
/// `KEY must be EXPECTED, not FOUND`.
void report_type(Diagnostics& diagnostics, std::string_view key, std::string_view expected,
                 const core::Value& found);
/// An unknown key of `map` for each member that is not among `allowed`. @param place for the
/// message, as in `docker settings`
void report_unknown_keys(const core::Value& map, std::span<const std::string> allowed,
                         std::string_view place, Diagnostics& diagnostics);
/// For messages: `a list`, `the number 5`, `the text 'x'`.
std::string describe(const core::Value& value);

/// What the scalar means by YAML 1.2's core schema: a boolean, number, text or null; nothing for
/// numbers that JSON cannot hold (too large, .inf, .nan).
std::optional<nlohmann::json> scalar_to_json(const core::Value& scalar);
/// The same for a text that is no part of a document, such as an option's value.
std::optional<nlohmann::json> plain_to_json(std::string_view text);

// Each reads `value`, the member called `key`; on a wrong type or content it reports and returns
// nothing.
std::optional<bool> read_bool(std::string_view key, const core::Value& value,
                              Diagnostics& diagnostics);
/// Numbers and booleans are taken as they are written.
std::optional<std::string> read_text(std::string_view key, const core::Value& value,
                                     const Format& format, Diagnostics& diagnostics);
std::optional<std::vector<std::string>> read_texts(std::string_view key, const core::Value& value,
                                                   const Format& format, Diagnostics& diagnostics);
std::optional<StringMap> read_map(std::string_view key, const core::Value& value,
                                  const Format& key_format, const Format& format,
                                  Diagnostics& diagnostics);
std::optional<unsigned> read_count(std::string_view key, const core::Value& value,
                                   Diagnostics& diagnostics);
std::optional<double> read_number(std::string_view key, const core::Value& value,
                                  const NumberFormat& format, Diagnostics& diagnostics);
std::optional<Bytes> read_bytes(std::string_view key, const core::Value& value,
                                Diagnostics& diagnostics);
std::optional<Duration> read_duration(std::string_view key, const core::Value& value,
                                      Diagnostics& diagnostics);
/// True if it is a map; reports if not.
bool expect_map(std::string_view key, const core::Value& value, Diagnostics& diagnostics);

}  // namespace pipeline::settings

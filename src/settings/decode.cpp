#include "settings/decode.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/quantity.hpp"
#include "core/text.hpp"

namespace pipeline::settings {
namespace {

bool all_digits(std::string_view text) { return !text.empty() && core::all(text, core::is_digit); }

/// `[-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`
bool is_float(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  if (const auto e = text.find_first_of("eE"); e != std::string_view::npos) {
    auto exponent = text.substr(e + 1);
    if (exponent.starts_with('-') || exponent.starts_with('+')) exponent.remove_prefix(1);
    if (!all_digits(exponent)) return false;
    text = text.substr(0, e);
  }
  const auto dot = text.find('.');
  if (dot == std::string_view::npos) return all_digits(text);
  const auto whole = text.substr(0, dot), fraction = text.substr(dot + 1);
  return (whole.empty() ? all_digits(fraction) : all_digits(whole)) &&
         (fraction.empty() || all_digits(fraction));
}

bool is_special_float(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return text == ".inf" || text == ".Inf" || text == ".INF" || text == ".nan" || text == ".NaN" ||
         text == ".NAN";
}

template <class Integer>
std::optional<Integer> parse_integer(std::string_view digits, int base) {
  Integer number{};
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

std::optional<nlohmann::json> parse_whole(std::string_view text, int base) {
  if (const auto number = parse_integer<std::int64_t>(text, base)) return *number;
  if (const auto number = parse_integer<std::uint64_t>(text, base)) return *number;
  return std::nullopt;
}

/// Returns true if the text is the prefix of a base, such as `0x`, and digits of that base.
bool is_in_base(std::string_view text, std::string_view prefix, std::string_view digits) {
  return text.starts_with(prefix) && text.size() > prefix.size() &&
         text.find_first_not_of(digits, prefix.size()) == std::string_view::npos;
}

std::string shortened(const std::string& text) {
  constexpr std::size_t max_shown = 60;
  std::string shown = text.substr(0, text.find('\n'));
  std::size_t length = std::min(shown.size(), max_shown);
  while (length > 0 && length < shown.size() &&
         (static_cast<unsigned char>(shown[length]) & 0xC0) == 0x80)
    --length;
  const bool cut = length < text.size();
  shown.resize(length);
  for (char& c : shown)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return cut ? shown + "..." : shown;
}

/// Returns true if the member is what YAML reads behind a comma in a text without quotes:
/// `{gpus: device=0,1}` has the keys `gpus` and `1`.
bool is_behind_comma(const core::Value::Member& before, const core::Value::Member& member) {
  const auto& [key, value] = member;
  const auto& last = before.second.kind == core::Value::Kind::null ? before.first : before.second;
  return value.kind == core::Value::Kind::null && last.kind == core::Value::Kind::scalar &&
         !last.quoted && !key.quoted && last.span.line == key.span.line &&
         last.span.column + last.span.length + 1 == key.span.column;
}

/// Returns advice to quote the text that YAML has cut at its commas into the members from `first`
/// to `last`.
std::string quoting_advice(const core::Value& map, std::size_t first, std::size_t last) {
  std::string text = map.members[first].second.scalar;
  for (auto i = first + 1; i <= last; ++i) text += "," + map.members[i].first.scalar;
  return "YAML ends a value in braces at a `,`: put the value in quotes, as in `" +
         map.members[first].first.scalar + ": \"" + shortened(text) + "\"`";
}

}  // namespace

void report(Diagnostics& diagnostics, std::string code, std::string message, core::Span span,
            std::vector<std::string> notes, std::string suggestion) {
  diagnostics.push_back(
      {std::move(code), std::move(message), span, std::move(notes), std::move(suggestion)});
}

std::string describe(const core::Value& value) {
  switch (value.kind) {
    case core::Value::Kind::null: return "empty";
    case core::Value::Kind::list: return "a list";
    case core::Value::Kind::map: return "a map";
    case core::Value::Kind::scalar: break;
  }
  if (!value.quoted) {
    const auto json = scalar_to_json(value);
    if (!json || json->is_number()) return "the number " + shortened(value.scalar);
    if (json->is_boolean()) return "the boolean " + value.scalar;
  }
  return value.scalar.empty() ? "an empty text" : "the text '" + shortened(value.scalar) + "'";
}

void report_type(Diagnostics& diagnostics, std::string_view key, std::string_view expected,
                 const core::Value& found) {
  report(diagnostics, "wrong-type",
         "'" + std::string(key) + "' must be " + std::string(expected) + ", not " + describe(found),
         found.span);
}

void report_unknown_keys(const core::Value& map, std::span<const std::string> allowed,
                         std::string_view place, Diagnostics& diagnostics,
                         std::span<const OtherName> others) {
  for (std::size_t i = 0; i < map.members.size(); ++i) {
    const auto& key = map.members[i].first;
    if (std::find(allowed.begin(), allowed.end(), key.scalar) != allowed.end()) continue;
    std::string list = "allowed: ";
    for (const auto& name : allowed) list += (&name == allowed.data() ? "" : ", ") + name;
    const auto known = std::ranges::find(others, std::string_view(key.scalar), &OtherName::key);
    std::string suggestion =
        known == others.end() ? core::did_you_mean(key.scalar, allowed) : known->advice;
    if (i > 0 && map.members[i - 1].second.kind == core::Value::Kind::scalar &&
        is_behind_comma(map.members[i - 1], map.members[i])) {
      const auto first = i - 1;
      while (i + 1 < map.members.size() && is_behind_comma(map.members[i], map.members[i + 1])) ++i;
      suggestion = quoting_advice(map, first, i);
    }
    report(diagnostics, "unknown-key",
           "unknown key '" + shortened(key.scalar) + "' in " + std::string(place), key.span,
           {std::move(list)}, std::move(suggestion));
  }
}

std::optional<nlohmann::json> plain_to_json(std::string_view text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL")
    return nlohmann::json(nullptr);
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  const std::string_view unsigned_text =
      text.starts_with('-') || text.starts_with('+') ? text.substr(1) : text;
  if (all_digits(unsigned_text))
    return parse_whole(text.starts_with('+') ? unsigned_text : text, 10);
  if (is_in_base(text, "0x", "0123456789abcdefABCDEF")) return parse_whole(text.substr(2), 16);
  if (is_in_base(text, "0o", "01234567")) return parse_whole(text.substr(2), 8);
  if (is_special_float(text)) return std::nullopt;
  if (is_float(text)) {
    double number = 0;
    const std::string_view digits = text.starts_with('+') ? unsigned_text : text;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc() || !std::isfinite(number)) return std::nullopt;
    return number;
  }
  return std::string(text);
}

std::optional<nlohmann::json> scalar_to_json(const core::Value& scalar) {
  if (scalar.kind == core::Value::Kind::null) return nlohmann::json(nullptr);
  if (scalar.quoted) return scalar.scalar;
  return plain_to_json(scalar.scalar);
}

std::optional<bool> read_bool(std::string_view key, const core::Value& value,
                              Diagnostics& diagnostics) {
  if (value.kind == core::Value::Kind::scalar && !value.quoted)
    if (const auto json = plain_to_json(value.scalar); json && json->is_boolean())
      return json->get<bool>();
  report_type(diagnostics, key, "true or false", value);
  // YAML 1.1 reads these words as booleans, and many users still expect that.
  for (const auto& [meant, words] : {std::pair{"true", "|true|True|yes|Yes|on|On|y|"},
                                     std::pair{"false", "|false|False|no|No|off|Off|n|"}})
    if (value.kind == core::Value::Kind::scalar &&
        std::string_view(words).find("|" + value.scalar + "|") != std::string_view::npos)
      diagnostics.back().suggestion = "did you mean `" + std::string(key) + ": " + meant + "`?";
  return std::nullopt;
}

namespace {

void suggest_nearest(const Format& format, const core::Value& value, Diagnostics& diagnostics) {
  if (!format.nearest || value.kind != core::Value::Kind::scalar) return;
  if (const auto meant = format.nearest(value.scalar); format.accepts(meant))
    diagnostics.back().suggestion = "did you mean `" + meant + "`?";
}

}  // namespace

std::optional<std::string> read_text(std::string_view key, const core::Value& value,
                                     const Format& format, Diagnostics& diagnostics) {
  if (value.kind == core::Value::Kind::scalar && format.accepts(value.scalar)) return value.scalar;
  if (value.kind == core::Value::Kind::scalar && format.accepts != formats::text.accepts &&
      !formats::line.accepts(value.scalar)) {
    report(diagnostics, "control-character",
           "'" + std::string(key) + "' has a line end or another control character in it",
           value.span);
  } else {
    report_type(diagnostics, key, format.expected, value);
    suggest_nearest(format, value, diagnostics);
  }
  return std::nullopt;
}

std::optional<std::vector<std::string>> read_texts(std::string_view key, const core::Value& value,
                                                   const Format& format, Diagnostics& diagnostics) {
  if (value.kind != core::Value::Kind::list) {
    report_type(diagnostics, key, "a list", value);
    if (value.kind == core::Value::Kind::scalar && format.accepts(value.scalar))
      diagnostics.back().suggestion =
          "did you mean `" + std::string(key) + ": [" + value.scalar + "]`?";
    return std::nullopt;
  }
  std::vector<std::string> texts;
  texts.reserve(value.items.size());
  const std::string each = "each of '" + std::string(key) + "'";
  for (const core::Value& item : value.items) {
    if (item.kind == core::Value::Kind::scalar && format.accepts(item.scalar)) {
      texts.push_back(item.scalar);
    } else if (item.kind == core::Value::Kind::scalar && !formats::line.accepts(item.scalar)) {
      report(diagnostics, "control-character",
             each + " must be free of line ends and other control characters", item.span);
    } else {
      report(diagnostics, "wrong-type",
             each + " must be " + format.expected + ", not " + describe(item), item.span);
      suggest_nearest(format, item, diagnostics);
    }
  }
  return texts;
}

std::optional<StringMap> read_map(std::string_view key, const core::Value& value,
                                  const Format& key_format, const Format& format,
                                  Diagnostics& diagnostics) {
  if (!expect_map(key, value, diagnostics)) return std::nullopt;
  StringMap map;
  for (const auto& [name, member] : value.members) {
    if (!key_format.accepts(name.scalar))
      report(diagnostics, "bad-name",
             "a key of '" + std::string(key) + "' must be " + key_format.expected + ", not " +
                 describe(name),
             name.span);
    else if (auto text =
                 read_text(std::string(key) + "." + name.scalar, member, format, diagnostics))
      map.emplace(name.scalar, std::move(*text));
  }
  return map;
}

std::optional<unsigned> read_count(std::string_view key, const core::Value& value,
                                   Diagnostics& diagnostics, CountRange range) {
  if (value.kind == core::Value::Kind::scalar && !value.quoted)
    if (const auto json = plain_to_json(value.scalar);
        json && json->is_number_integer() && *json >= range.min && *json <= range.max)
      return json->get<unsigned>();
  report_type(
      diagnostics, key,
      "a whole number from " + std::to_string(range.min) + " to " + std::to_string(range.max),
      value);
  // `docker run --gpus all` and PyTorch Lightning's -1 mean all GPUs.
  if (key == "gpu_count" && (value.scalar == "all" || value.scalar == "-1"))
    diagnostics.back().suggestion = "write `gpus: all` for all GPUs of the machine";
  return std::nullopt;
}

std::optional<double> read_number(std::string_view key, const core::Value& value,
                                  const NumberFormat& format, Diagnostics& diagnostics) {
  if (value.kind == core::Value::Kind::scalar && !value.quoted)
    if (const auto json = plain_to_json(value.scalar);
        json && json->is_number() && format.accepts(json->get<double>()))
      return json->get<double>();
  report_type(diagnostics, key, format.expected, value);
  return std::nullopt;
}

std::optional<Bytes> read_bytes(std::string_view key, const core::Value& value,
                                Diagnostics& diagnostics) {
  if (value.kind == core::Value::Kind::scalar)
    if (const auto bytes = core::parse_bytes(value.scalar); bytes && *bytes > 0) return bytes;
  report_type(diagnostics, key, "a size above 0 such as `512MB`, `8GiB` or a number of bytes",
              value);
  return std::nullopt;
}

std::optional<Factor> read_factor(std::string_view key, const core::Value& value,
                                  Diagnostics& diagnostics) {
  constexpr int max_factor = 1000;
  const auto number_in = [](std::string_view text) -> std::optional<double> {
    const auto json = plain_to_json(text);
    if (!json || !json->is_number() || *json <= 1 || *json > max_factor) return std::nullopt;
    return json->get<double>();
  };
  const bool is_scalar = value.kind == core::Value::Kind::scalar;
  if (is_scalar && value.scalar.starts_with('x'))
    if (const auto number = number_in(std::string_view(value.scalar).substr(1)))
      return Factor(*number);
  report_type(diagnostics, key, "a factor above 1 and at most 1000, such as `x2`", value);
  if (is_scalar && number_in(value.scalar))
    diagnostics.back().suggestion = "did you mean `x" + value.scalar + "`?";
  return std::nullopt;
}

std::optional<Duration> read_duration(std::string_view key, const core::Value& value,
                                      Diagnostics& diagnostics) {
  if (value.kind == core::Value::Kind::scalar)
    if (const auto duration = core::parse_duration(value.scalar)) return duration;
  report_type(diagnostics, key, "a duration such as `90s`, `10m`, `1h30m` or a number of seconds",
              value);
  return std::nullopt;
}

bool expect_map(std::string_view key, const core::Value& value, Diagnostics& diagnostics) {
  if (value.kind == core::Value::Kind::map) return true;
  report_type(diagnostics, key, "a map", value);
  return false;
}

}  // namespace pipeline::settings

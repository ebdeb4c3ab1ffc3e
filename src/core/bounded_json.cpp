#include "core/bounded_json.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

namespace pipeline::core {
namespace {

/// Bounds the memory of the values of a text: a value takes some 40 bytes, and its text (`[],`) may
/// have only three.
constexpr std::size_t max_values = 4'000'000;

/// Passes the characters outside of strings to `accepts`, until it returns false.
/// @return true if all were accepted
template <class Accepts>
bool accepts_all_outside_strings(std::string_view text, Accepts accepts) {
  bool is_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        is_string = false;
    } else if (c == '"') {
      is_string = true;
    } else if (!accepts(c)) {
      return false;
    }
  }
  return true;
}

/// Returns true if a JSON text has at most `max_values` values. Each value but the first follows
/// one of the counted characters.
bool has_few_values(std::string_view text) {
  if (text.size() < max_values) return true;  // Each value takes a character.
  std::size_t values = 1;
  return accepts_all_outside_strings(text, [&](char c) {
    if (c == ',' || c == '[' || c == '{') ++values;
    return values <= max_values;
  });
}

nlohmann::json::out_of_range outside_range(const nlohmann::json& value) {
  return nlohmann::json::out_of_range::create(406, "not an integer of the expected range", &value);
}

}  // namespace

bool is_within(std::string_view text, JsonLimits limits) {
  if (text.size() > limits.bytes) return false;
  unsigned depth = 0;
  return accepts_all_outside_strings(text, [&](char c) {
    if (c == '[' || c == '{') return ++depth <= limits.depth;
    if ((c == ']' || c == '}') && depth > 0) --depth;
    return true;
  });
}

nlohmann::json parse_json(std::string_view text, JsonLimits limits) {
  if (!is_within(text, limits) || !has_few_values(text))
    return nlohmann::json(nlohmann::json::value_t::discarded);
  constexpr bool throws = false;
  return nlohmann::json::parse(text, nullptr, throws);
}

std::string fault_of_json(std::string_view text, JsonLimits limits) {
  if (!is_within(text, limits) || !has_few_values(text))
    return "it is too large or nested too deeply";
  std::size_t position = text.size();
  try {
    [[maybe_unused]] const auto value = nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    position = std::min(error.byte, text.size());
  } catch (const nlohmann::json::out_of_range& error) {
    const std::string_view message = error.what();  // `number overflow parsing '1e400'`
    const auto number = message.substr(std::min(message.find('\''), message.size()));
    return "the number " + std::string(number) + " is too large for 64 bits";
  }
  const auto before = text.substr(0, position);
  return "the fault is in line " + std::to_string(std::ranges::count(before, '\n') + 1);
}

std::int64_t integer_within(const nlohmann::json& value, std::int64_t min, std::int64_t max) {
  const bool is_larger_than_any =
      value.is_number_unsigned() && !std::in_range<std::int64_t>(value.get<std::uint64_t>());
  if (!value.is_number_integer() || is_larger_than_any || value.get<std::int64_t>() < min ||
      value.get<std::int64_t>() > max)
    throw outside_range(value);
  return value.get<std::int64_t>();
}

std::uint64_t unsigned_within(const nlohmann::json& value, std::uint64_t max) {
  const bool is_negative =
      !value.is_number_unsigned() && value.is_number_integer() && value.get<std::int64_t>() < 0;
  if (!value.is_number_integer() || is_negative || value.get<std::uint64_t>() > max)
    throw outside_range(value);
  return value.get<std::uint64_t>();
}

}  // namespace pipeline::core

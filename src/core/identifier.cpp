#include "core/identifier.hpp"

#include <algorithm>
#include <ctime>

#include "core/text.hpp"

namespace pipeline::core {

namespace {

// <cctype> is not used, because valid names must not depend on the locale.
constexpr bool is_variable_character(char c) { return is_alnum(c) || c == '_'; }

}  // namespace

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 128 && is_alnum(text.front()) &&
         all(text, [](char c) { return is_variable_character(c) || c == '-' || c == '.'; });
}

bool is_variable_name(std::string_view text) {
  return !text.empty() && !is_digit(text.front()) && all(text, is_variable_character);
}

bool has_control_characters(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

std::string make_run_id(std::int64_t unix_milliseconds, std::uint32_t random) {
  const std::time_t seconds = unix_milliseconds / 1000;
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[64];
  std::string id(text, std::strftime(text, sizeof text, "%Y%m%d-%H%M%S-", &utc));
  for (int shift = 25; shift >= 0; shift -= 5)
    id += "0123456789abcdefghjkmnpqrstvwxyz"[random >> shift & 31];
  return id;
}

std::string variable_name(std::string_view prefix, std::string_view name) {
  std::string result(prefix);
  for (const char c : name)
    result += is_lower(c) ? static_cast<char>(c - 'a' + 'A') : is_alnum(c) ? c : '_';
  return result;
}

std::string same_case_variable_name(std::string_view prefix, std::string_view name) {
  std::string result(prefix);
  for (const char c : name) result += is_alnum(c) ? c : '_';
  return result;
}

std::string shell_quote(std::string_view text) {
  static constexpr std::string_view safe = "_@%+=:,./-";
  const auto is_plain = [](char c) {
    return is_alnum(c) || safe.find(c) != std::string_view::npos;
  };
  if (!text.empty() && all(text, is_plain)) return std::string(text);
  return "'" + replaced(std::string(text), "'", "'\\''") + "'";
}

}  // namespace pipeline::core

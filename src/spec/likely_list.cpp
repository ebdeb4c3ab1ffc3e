#include "spec/likely_list.hpp"

#include <charconv>
#include <string_view>

#include "core/text.hpp"

namespace pipeline::spec {

std::string values_in(const std::string& text) {
  constexpr int max_shown = 20;
  const auto number = [](std::string_view digits) {
    digits = core::trimmed(digits);
    int value = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size() ? value : -1;
  };
  constexpr std::string_view call = "range(";
  const bool is_call = text.starts_with(call) && text.ends_with(')');
  const auto inner = is_call
                         ? std::string_view(text).substr(call.size(), text.size() - call.size() - 1)
                         : std::string_view(text);
  int first = is_call ? 0 : -1, last = is_call ? number(inner) : -1;
  for (const std::string_view sign : {"..", "-", ":", ","})
    if (const auto at = inner.find(sign); at != inner.npos && (sign == ",") == is_call) {
      first = number(inner.substr(0, at));
      last = number(inner.substr(at + sign.size()));
      break;
    }
  if (is_call) --last;
  if (first < 0 || last < first || last - first > max_shown) return text;
  std::string list = std::to_string(first);
  for (int value = first + 1; value <= last; ++value) list += ", " + std::to_string(value);
  return list;
}

}  // namespace pipeline::spec

#include "core/bounded_json.hpp"

#include <nlohmann/json.hpp>

namespace pipeline::core {

bool is_within(std::string_view text, JsonLimits limits) {
  if (text.size() > limits.bytes) return false;
  unsigned depth = 0;
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
    } else if (c == '[' || c == '{') {
      if (++depth > limits.depth) return false;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return true;
}

nlohmann::json parse_json(std::string_view text, JsonLimits limits) {
  if (!is_within(text, limits)) return nlohmann::json(nlohmann::json::value_t::discarded);
  return nlohmann::json::parse(text, nullptr, false);
}

}  // namespace pipeline::core

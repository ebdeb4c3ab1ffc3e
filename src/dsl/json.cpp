#include <pipeline/json.hpp>

namespace pipeline::detail {

void json_mismatch(const std::string& place, const char* expected, const json& found) {
  auto shown = found.dump(-1, ' ', false, json::error_handler_t::replace);
  if (shown.size() > 60) shown = shown.substr(0, 57) + "...";
  if (found.is_null()) shown = "nothing";
  throw JsonError((place.empty() ? "" : place + ": ") + "expected " + expected + ", found " + shown);
}

bool special_number(const std::string& text, double& value) {
  constexpr auto infinity = std::numeric_limits<double>::infinity();
  if (text == "NaN")
    value = std::numeric_limits<double>::quiet_NaN();
  else if (text == "Infinity" || text == "-Infinity")
    value = text[0] == '-' ? -infinity : infinity;
  else
    return false;
  return true;
}

}  // namespace pipeline::detail

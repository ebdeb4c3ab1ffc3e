#include "core/structured_line.hpp"
#include "core/bounded_json.hpp"

#include <cmath>

#include <nlohmann/json.hpp>

namespace pipeline::core {
namespace {

using nlohmann::json;

std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

std::optional<json> parse_structured(std::string_view line) {
  if (!line.starts_with(structured_prefix)) return std::nullopt;
  auto object = parse_json(line.substr(structured_prefix.size() - 1));
  if (!object.is_object()) return std::nullopt;
  return object;
}

std::string shown_line(std::string_view line) {
  const auto object = parse_structured(line);
  if (!object) return std::string(line);
  std::string text;
  if (const auto progress = object->find("progress");
      progress != object->end() && progress->is_number())
    text = std::to_string(std::lround(progress->get<double>() * 100)) + " %";
  if (const auto metric = object->find("metric"); metric != object->end())
    text +=
        text_of(*metric) + " = " + (object->contains("value") ? text_of((*object)["value"]) : "");
  if (const auto level = object->find("level"); level != object->end())
    text += text_of(*level) + ":";
  if (const auto message = object->find("message"); message != object->end())
    text += (text.empty() ? "" : " ") + text_of(*message);
  if (const auto fields = object->find("fields"); fields != object->end() && fields->is_object())
    for (const auto& [name, value] : fields->items()) text += " " + name + "=" + text_of(value);
  return text.empty() ? std::string(line) : text;
}

}  // namespace pipeline::core

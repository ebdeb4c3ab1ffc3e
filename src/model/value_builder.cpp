#include "model/value_builder.hpp"

#include <nlohmann/json.hpp>

namespace pipeline::model {

core::Value value_of(const nlohmann::json& from, core::Span span) {
  if (from.is_null()) return empty_value(core::Value::Kind::null, span);
  if (from.is_string()) return text_value(from.get<std::string>(), span);
  if (!from.is_structured()) return plain_value(from.dump(), span);
  auto value =
      empty_value(from.is_array() ? core::Value::Kind::list : core::Value::Kind::map, span);
  for (const auto& [key, item] : from.items()) {
    if (from.is_array())
      value.items.push_back(value_of(item, span));
    else
      value.members.push_back({text_value(key, span), value_of(item, span)});
  }
  return value;
}

}  // namespace pipeline::model

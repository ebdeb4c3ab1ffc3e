#include "spec/resource_places.hpp"

#include "settings/settings.hpp"
#include "yaml/document.hpp"

namespace pipeline::spec {

ResourcePlaces::ResourcePlaces(std::string_view text) {
  settings::Diagnostics ignored;
  root_ = yaml::parse_yaml(text, ignored);
}

std::optional<core::Span> ResourcePlaces::find(std::string_view step, std::string_view name) const {
  const core::Value* value = root_ ? &*root_ : nullptr;
  for (const auto key : {std::string_view("steps"), step, std::string_view("settings"),
                         std::string_view("resources"), name}) {
    if (!value || value->kind != core::Value::Kind::map) return std::nullopt;
    value = value->find(key);
  }
  if (!value || value->kind != core::Value::Kind::scalar) return std::nullopt;
  return value->span;
}

}  // namespace pipeline::spec

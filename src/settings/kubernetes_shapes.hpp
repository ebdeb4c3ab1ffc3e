/// @file
/// The shapes of Kubernetes objects in settings, detailed enough to report common mistakes before a
/// cluster is asked; values of Kind::any are left to the cluster's own validation.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "settings/formats.hpp"
#include "settings/settings.hpp"

namespace pipeline::settings {

struct Shape;

/// A member of an object.
struct Part {
  const char* key;
  const Shape* shape;
  bool required = false;
};

struct Shape {
  enum class Kind { any, flag, whole, text, word, list, map, object };
  Kind kind;
  const char* name = nullptr;      ///< Name of an object for messages, such as `a toleration`.
  const Format* format = nullptr;  ///< Format of a text, or of the short form of a list's items.
  std::span<const char* const> words = {};  ///< The permitted values of a word.
  std::span<const Part> parts = {};         ///< Members of an object.
  const Shape* inside = nullptr;            ///< Shape of a list's items or of a map's values.
};

namespace shapes {
extern const Shape affinity, tolerations, env, env_from, volumes, volume_mounts,
    container_security_context, pod_security_context;
extern const Shape pod_spec;  ///< An object with any keys.
extern const Shape job;       ///< `metadata` (labels and annotations only) and `spec`.
}  // namespace shapes

/// Decodes the value; short forms are kept as they are. Reports an error and returns nothing if the
/// value is of another kind than the shape. Reports errors inside a list or map, and omits the
/// invalid parts.
std::optional<nlohmann::json> decode_shape(const std::string& key, const core::Value& value,
                                           const Shape& shape, Diagnostics& diagnostics);
/// Decodes the value, and returns the members of its map; none if the value is not a map.
std::map<std::string, Json> decode_object(const std::string& key, const core::Value& value,
                                          const Shape& shape, Diagnostics& diagnostics);

/// Returns a JSON Schema for editors, which does not describe the members of objects.
nlohmann::json shape_schema(const Shape& shape);

}  // namespace pipeline::settings

/// @file
/// Kubernetes' own objects in settings: what they hold, as far as their author is helped by being
/// told before a cluster is asked. Where a table ends (Kind::any), the cluster's own check begins.
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

/// A key of an object.
struct Part {
  const char* key;
  const Shape* shape;
  bool required = false;
};

struct Shape {
  enum class Kind { any, flag, whole, text, word, list, map, object };
  Kind kind;
  const char* name = nullptr;      ///< Of an object, for messages: `a toleration`.
  const Format* format = nullptr;  ///< Of a text; of the short form that a list's items may have.
  std::span<const char* const> words = {};  ///< Those of which a word is one.
  std::span<const Part> parts = {};         ///< Of an object.
  const Shape* inside = nullptr;            ///< Of a list's items, of a map's values.
};

namespace shapes {
extern const Shape affinity, tolerations, env, env_from, volumes, volume_mounts,
    container_security_context, pod_security_context;
extern const Shape pod_spec;  ///< Any keys.
extern const Shape
    job;  ///< `metadata` and `spec`; no more than labels and annotations of the former.
}  // namespace shapes

/// Short forms stay as they are. Nothing where it is not even a list or map; what is wrong inside
/// is reported and left out.
std::optional<nlohmann::json> decode_shape(const std::string& key, const core::Value& value,
                                           const Shape& shape, Diagnostics& diagnostics);
std::map<std::string, Json> decode_object(const std::string& key, const core::Value& value,
                                          const Shape& shape, Diagnostics& diagnostics);

/// For editors: no deeper than the items of a list.
nlohmann::json shape_schema(const Shape& shape);

}  // namespace pipeline::settings

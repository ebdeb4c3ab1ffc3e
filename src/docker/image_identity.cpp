#include "docker/image_identity.hpp"

#include <array>

#include <nlohmann/json.hpp>

#include "core/digest.hpp"
#include "docker/json_text.hpp"

namespace pipeline::docker {
namespace {

using nlohmann::json;

/// Members of the image specification, and Docker's extensions, that change a build or a container.
constexpr std::array config_members{"User",       "ExposedPorts", "Env",     "Entrypoint",
                                    "Cmd",        "Volumes",      "Labels",  "WorkingDir",
                                    "StopSignal", "Healthcheck",  "OnBuild", "Shell"};

/// Returns true for null and empty values, which engines write for unset members.
bool is_unset(const json& value) {
  return value.is_null() || ((value.is_object() || value.is_array()) && value.empty()) ||
         value == "";
}

}  // namespace

std::string image_identity(const json& image) {
  const auto layers = image.value(json::json_pointer("/RootFS/Layers"), json());
  core::Hasher hasher;
  hasher.field("image 1");
  if (!layers.is_array() || layers.empty()) {  // The engine does not report the layers.
    return hasher.field(text_at(image, "Id")).finish().hex();
  }
  for (const auto* name : {"Os", "Architecture"}) hasher.field(text_at(image, name));
  for (const auto& layer : layers) hasher.field("layer").field(layer.dump());
  const auto config = image.value("Config", json());
  for (const auto* name : config_members) {
    const auto member = config.is_object() ? config.value(name, json()) : json();
    if (!is_unset(member))
      hasher.field(name).field(member.dump(-1, ' ', false, json::error_handler_t::replace));
  }
  return hasher.finish().hex();
}

std::string user_of(const json& image) {
  auto user = text_at(image.value("Config", json()), "User");
  if (user == "root" || user == "0") user.clear();
  return user;
}

bool fits_platform(const json& image, const std::string& platform) {
  if (platform.empty()) return true;
  const auto own = text_at(image, "Os") + "/" + text_at(image, "Architecture");
  return platform == own || platform.starts_with(own + "/");
}

}  // namespace pipeline::docker

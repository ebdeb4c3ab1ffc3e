#include "orchestrators/kubernetes/short_forms.hpp"

#include <algorithm>
#include <string_view>

namespace pipeline::orchestrators::kubernetes {
namespace {

using nlohmann::json;

/// Removes and returns the text before the separator; all of it if there is no separator.
std::string take(std::string_view& text, char separator) {
  const auto end = std::min(text.find(separator), text.size());
  std::string part(text.substr(0, end));
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

}  // namespace

json toleration_of(const json& given) {
  if (!given.is_string()) return given;
  const auto& text = given.get_ref<const std::string&>();
  const auto colon = text.find(':'), equals = text.substr(0, colon).find('=');
  json toleration{{"key", text.substr(0, std::min(colon, equals))},
                  {"operator", equals == text.npos ? "Exists" : "Equal"}};
  if (equals != text.npos)
    toleration["value"] = text.substr(equals + 1, colon == text.npos ? colon : colon - equals - 1);
  if (colon != text.npos) toleration["effect"] = text.substr(colon + 1);
  return toleration;
}

json env_of(const json& given) {
  if (!given.is_string()) return given;
  std::string_view rest = given.get_ref<const std::string&>();
  const auto name = take(rest, '='), kind = take(rest, '/'), object = take(rest, '/');
  return {{"name", name},
          {"valueFrom",
           {{kind == "secret" ? "secretKeyRef" : "configMapKeyRef",
             {{"name", object}, {"key", rest}}}}}};
}

json env_from_of(const json& given) {
  if (!given.is_string()) return given;
  std::string_view rest = given.get_ref<const std::string&>();
  const auto kind = take(rest, '/');
  return {{kind == "secret" ? "secretRef" : "configMapRef", {{"name", rest}}}};
}

VolumeAndMount volume_of(const json& given, const std::string& name) {
  if (!given.is_string()) return {given, nullptr};
  std::string_view rest = given.get_ref<const std::string&>();
  const auto kind = take(rest, '/'), object = take(rest, ':'), target = take(rest, ':');
  json volume{{"name", name}};
  if (kind == "pvc")
    volume["persistentVolumeClaim"] = {{"claimName", object}};
  else if (kind == "secret")
    volume["secret"] = {{"secretName", object}};
  else
    volume["configMap"] = {{"name", object}};
  return {std::move(volume),
          {{"name", name}, {"mountPath", target}, {"readOnly", rest == "ro" || kind != "pvc"}}};
}

}  // namespace pipeline::orchestrators::kubernetes

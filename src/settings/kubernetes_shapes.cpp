#include "settings/kubernetes_shapes.hpp"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "settings/decode.hpp"

namespace pipeline::settings {
namespace shapes {
namespace {

using Kind = Shape::Kind;

constexpr Shape any{Kind::any};
constexpr Shape flag{Kind::flag};
constexpr Shape whole{Kind::whole};
constexpr Shape line{.kind = Kind::text, .format = &formats::line};
constexpr Shape path{.kind = Kind::text, .format = &formats::path};
constexpr Shape variable{.kind = Kind::text, .format = &formats::variable};
constexpr Shape name{.kind = Kind::text, .format = &formats::kubernetes_name};
constexpr Shape label_key{.kind = Kind::text, .format = &formats::kubernetes_key};
constexpr Shape label_value{.kind = Kind::text, .format = &formats::kubernetes_label};
constexpr Shape quantity{.kind = Kind::text, .format = &formats::quantity};

constexpr Shape word_of(std::span<const char* const> words) {
  return {.kind = Kind::word, .words = words};
}
constexpr Shape list_of(const Shape& items, const Format* short_form = nullptr) {
  return {.kind = Kind::list, .format = short_form, .inside = &items};
}
constexpr Shape map_of(const Shape& values) { return {.kind = Kind::map, .inside = &values}; }
constexpr Shape object_of(const char* what, std::span<const Part> parts) {
  return {.kind = Kind::object, .name = what, .parts = parts};
}

constexpr Shape lines = list_of(line), wholes = list_of(whole), label_values = list_of(label_value),
                labels = map_of(label_value), texts = map_of(line);

// Affinity
constexpr std::array node_operators{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"};
constexpr std::array label_operators{"In", "NotIn", "Exists", "DoesNotExist"};
constexpr Shape node_operator = word_of(node_operators), label_operator = word_of(label_operators);
constexpr std::array node_requirement_parts{Part{"key", &label_key, true},
                                            Part{"operator", &node_operator, true},
                                            Part{"values", &label_values}};
constexpr Shape node_requirement = object_of("a node's requirement", node_requirement_parts),
                node_requirements = list_of(node_requirement);
constexpr std::array field_requirement_parts{
    Part{"key", &line, true}, Part{"operator", &node_operator, true}, Part{"values", &lines}};
constexpr Shape field_requirement = object_of("a field's requirement", field_requirement_parts),
                field_requirements = list_of(field_requirement);
constexpr std::array node_term_parts{Part{"matchExpressions", &node_requirements},
                                     Part{"matchFields", &field_requirements}};
constexpr Shape node_term = object_of("a node selector term", node_term_parts),
                node_terms = list_of(node_term);
constexpr std::array node_selector_parts{Part{"nodeSelectorTerms", &node_terms, true}};
constexpr Shape node_selector = object_of("a node selector", node_selector_parts);
constexpr std::array preference_parts{Part{"weight", &whole, true},
                                      Part{"preference", &node_term, true}};
constexpr Shape preference = object_of("a preferred term", preference_parts),
                preferences = list_of(preference);
constexpr std::array node_affinity_parts{
    Part{"requiredDuringSchedulingIgnoredDuringExecution", &node_selector},
    Part{"preferredDuringSchedulingIgnoredDuringExecution", &preferences}};
constexpr Shape node_affinity = object_of("a node affinity", node_affinity_parts);

constexpr std::array label_requirement_parts{Part{"key", &label_key, true},
                                             Part{"operator", &label_operator, true},
                                             Part{"values", &label_values}};
constexpr Shape label_requirement = object_of("a label's requirement", label_requirement_parts),
                label_requirements = list_of(label_requirement);
constexpr std::array label_selector_parts{Part{"matchLabels", &labels},
                                          Part{"matchExpressions", &label_requirements}};
constexpr Shape label_selector = object_of("a label selector", label_selector_parts);
constexpr std::array pod_term_parts{Part{"topologyKey", &label_key, true},
                                    Part{"labelSelector", &label_selector},
                                    Part{"namespaces", &lines},
                                    Part{"namespaceSelector", &label_selector},
                                    Part{"matchLabelKeys", &lines},
                                    Part{"mismatchLabelKeys", &lines}};
constexpr Shape pod_term = object_of("a pod affinity term", pod_term_parts),
                pod_terms = list_of(pod_term);
constexpr std::array weighted_pod_term_parts{Part{"weight", &whole, true},
                                             Part{"podAffinityTerm", &pod_term, true}};
constexpr Shape weighted_pod_term = object_of("a preferred term", weighted_pod_term_parts),
                weighted_pod_terms = list_of(weighted_pod_term);
constexpr std::array pod_affinity_parts{
    Part{"requiredDuringSchedulingIgnoredDuringExecution", &pod_terms},
    Part{"preferredDuringSchedulingIgnoredDuringExecution", &weighted_pod_terms}};
constexpr Shape pod_affinity = object_of("a pod affinity", pod_affinity_parts);
constexpr std::array affinity_parts{Part{"nodeAffinity", &node_affinity},
                                    Part{"podAffinity", &pod_affinity},
                                    Part{"podAntiAffinity", &pod_affinity}};

// Tolerations
constexpr std::array toleration_operators{"Exists", "Equal"};
constexpr std::array effects{"NoSchedule", "PreferNoSchedule", "NoExecute"};
constexpr Shape toleration_operator = word_of(toleration_operators), effect = word_of(effects);
constexpr std::array toleration_parts{
    Part{"key", &label_key}, Part{"operator", &toleration_operator}, Part{"value", &label_value},
    Part{"effect", &effect}, Part{"tolerationSeconds", &whole}};
constexpr Shape toleration = object_of("a toleration", toleration_parts);

// Variables
constexpr std::array key_of_object_parts{Part{"name", &name, true}, Part{"key", &line, true},
                                         Part{"optional", &flag}};
constexpr Shape key_of_object = object_of("a reference to a key", key_of_object_parts);
constexpr std::array source_parts{Part{"secretKeyRef", &key_of_object},
                                  Part{"configMapKeyRef", &key_of_object}, Part{"fieldRef", &any},
                                  Part{"resourceFieldRef", &any}};
constexpr Shape source = object_of("a variable's source", source_parts);
constexpr std::array variable_parts{Part{"name", &variable, true}, Part{"value", &line},
                                    Part{"valueFrom", &source}};
constexpr Shape env_variable = object_of("a variable", variable_parts);
constexpr std::array object_name_parts{Part{"name", &name, true}, Part{"optional", &flag}};
constexpr Shape object_name = object_of("a reference", object_name_parts);
constexpr std::array env_source_parts{Part{"secretRef", &object_name},
                                      Part{"configMapRef", &object_name}, Part{"prefix", &line}};
constexpr Shape env_source = object_of("a source of variables", env_source_parts);

// Volumes
constexpr std::array item_parts{Part{"key", &line, true}, Part{"path", &path, true},
                                Part{"mode", &whole}};
constexpr Shape item = object_of("a file of a volume", item_parts), items = list_of(item);
constexpr std::array claim_parts{Part{"claimName", &name, true}, Part{"readOnly", &flag}};
constexpr std::array secret_parts{Part{"secretName", &name, true}, Part{"items", &items},
                                  Part{"defaultMode", &whole}, Part{"optional", &flag}};
constexpr std::array config_parts{Part{"name", &name, true}, Part{"items", &items},
                                  Part{"defaultMode", &whole}, Part{"optional", &flag}};
constexpr std::array empty_parts{Part{"medium", &line}, Part{"sizeLimit", &quantity}};
constexpr std::array host_parts{Part{"path", &path, true}, Part{"type", &line}};
constexpr std::array nfs_parts{Part{"server", &line, true}, Part{"path", &path, true},
                               Part{"readOnly", &flag}};
constexpr Shape claim = object_of("a claim's volume", claim_parts),
                secret = object_of("a Secret's volume", secret_parts),
                config = object_of("a ConfigMap's volume", config_parts),
                empty = object_of("an empty volume", empty_parts),
                host = object_of("a node's folder", host_parts),
                nfs = object_of("an NFS volume", nfs_parts);
constexpr std::array volume_parts{Part{"name", &name, true},
                                  Part{"persistentVolumeClaim", &claim},
                                  Part{"secret", &secret},
                                  Part{"configMap", &config},
                                  Part{"emptyDir", &empty},
                                  Part{"hostPath", &host},
                                  Part{"nfs", &nfs},
                                  Part{"projected", &any},
                                  Part{"downwardAPI", &any},
                                  Part{"csi", &any},
                                  Part{"ephemeral", &any},
                                  Part{"image", &any},
                                  Part{"fc", &any},
                                  Part{"iscsi", &any},
                                  Part{"cephfs", &any},
                                  Part{"rbd", &any},
                                  Part{"glusterfs", &any},
                                  Part{"flexVolume", &any},
                                  Part{"azureFile", &any},
                                  Part{"azureDisk", &any},
                                  Part{"awsElasticBlockStore", &any},
                                  Part{"gcePersistentDisk", &any}};
constexpr Shape volume = object_of("a volume", volume_parts);
constexpr std::array propagations{"None", "HostToContainer", "Bidirectional"};
constexpr Shape propagation = word_of(propagations);
constexpr std::array mount_parts{Part{"name", &name, true},
                                 Part{"mountPath", &path, true},
                                 Part{"subPath", &path},
                                 Part{"subPathExpr", &path},
                                 Part{"readOnly", &flag},
                                 Part{"recursiveReadOnly", &line},
                                 Part{"mountPropagation", &propagation}};
constexpr Shape mount = object_of("a volume mount", mount_parts);

// Security
constexpr std::array capabilities_parts{Part{"add", &lines}, Part{"drop", &lines}};
constexpr Shape capabilities = object_of("capabilities", capabilities_parts);
constexpr std::array profiles{"RuntimeDefault", "Localhost", "Unconfined"};
constexpr Shape profile_type = word_of(profiles);
constexpr std::array profile_parts{Part{"type", &profile_type, true},
                                   Part{"localhostProfile", &line}};
constexpr Shape profile = object_of("a profile", profile_parts);
constexpr std::array container_security_parts{Part{"allowPrivilegeEscalation", &flag},
                                              Part{"appArmorProfile", &profile},
                                              Part{"capabilities", &capabilities},
                                              Part{"privileged", &flag},
                                              Part{"procMount", &line},
                                              Part{"readOnlyRootFilesystem", &flag},
                                              Part{"runAsGroup", &whole},
                                              Part{"runAsNonRoot", &flag},
                                              Part{"runAsUser", &whole},
                                              Part{"seLinuxOptions", &texts},
                                              Part{"seccompProfile", &profile}};
constexpr std::array change_policies{"OnRootMismatch", "Always"};
constexpr Shape change_policy = word_of(change_policies);
constexpr std::array sysctl_parts{Part{"name", &line, true}, Part{"value", &line, true}};
constexpr Shape sysctl = object_of("a sysctl", sysctl_parts), sysctls = list_of(sysctl);
constexpr std::array pod_security_parts{Part{"appArmorProfile", &profile},
                                        Part{"fsGroup", &whole},
                                        Part{"fsGroupChangePolicy", &change_policy},
                                        Part{"runAsGroup", &whole},
                                        Part{"runAsNonRoot", &flag},
                                        Part{"runAsUser", &whole},
                                        Part{"seLinuxOptions", &texts},
                                        Part{"seccompProfile", &profile},
                                        Part{"supplementalGroups", &wholes},
                                        Part{"supplementalGroupsPolicy", &line},
                                        Part{"sysctls", &sysctls}};

// The Job
constexpr std::array metadata_parts{Part{"labels", &labels}, Part{"annotations", &texts}};
constexpr Shape metadata = object_of("the Job's metadata", metadata_parts), any_map = map_of(any);
constexpr std::array job_parts{Part{"metadata", &metadata}, Part{"spec", &any_map}};

}  // namespace

constexpr Shape affinity = object_of("an affinity", affinity_parts);
constexpr Shape tolerations = list_of(toleration, &formats::toleration);
constexpr Shape env = list_of(env_variable, &formats::env_source);
constexpr Shape env_from = list_of(env_source, &formats::env_from_source);
constexpr Shape volumes = list_of(volume, &formats::volume_source);
constexpr Shape volume_mounts = list_of(mount);
constexpr Shape container_security_context =
    object_of("a security context", container_security_parts);
constexpr Shape pod_security_context = object_of("a pod's security context", pod_security_parts);
constexpr Shape pod_spec = map_of(any);
constexpr Shape job = object_of("a Job", job_parts);

}  // namespace shapes

namespace {

using nlohmann::json;
using Kind = Shape::Kind;

std::optional<json> decode_any(const std::string& key, const core::Value& value,
                               Diagnostics& diagnostics) {
  switch (value.kind) {
    case core::Value::Kind::null: return json();
    case core::Value::Kind::scalar:
      if (!formats::text.accepts(value.scalar)) {
        report(diagnostics, "control-character", "'" + key + "' has a control character in it",
               value.span);
        return std::nullopt;
      }
      if (auto read = scalar_to_json(value)) return read;
      report(diagnostics, "bad-number",
             "the number " + value.scalar + " is too large: put it in quotes", value.span);
      return std::nullopt;
    case core::Value::Kind::list: {
      json list = json::array();
      for (std::size_t i = 0; i < value.items.size(); ++i)
        if (auto read =
                decode_any(key + "[" + std::to_string(i) + "]", value.items[i], diagnostics))
          list.push_back(std::move(*read));
      return list;
    }
    case core::Value::Kind::map: break;
  }
  json map = json::object();
  for (const auto& [name, member] : value.members)
    if (auto read = decode_any(key + "." + name.scalar, member, diagnostics))
      map[name.scalar] = std::move(*read);
  return map;
}

std::optional<json> decode_word(const std::string& key, const core::Value& value,
                                const Shape& shape, Diagnostics& diagnostics) {
  const std::vector<std::string> words(shape.words.begin(), shape.words.end());
  if (value.kind == core::Value::Kind::scalar &&
      std::find(words.begin(), words.end(), value.scalar) != words.end())
    return value.scalar;
  std::string expected;
  for (const auto& word : words)
    expected += (expected.empty() ? "`" : &word == &words.back() ? " or `" : ", `") + word + "`";
  report_type(diagnostics, key, expected, value);
  if (value.kind == core::Value::Kind::scalar)
    diagnostics.back().suggestion = core::did_you_mean(value.scalar, words);
  return std::nullopt;
}

std::optional<json> decode_list(const std::string& key, const core::Value& value,
                                const Shape& shape, Diagnostics& diagnostics) {
  if (value.kind != core::Value::Kind::list) {
    report_type(diagnostics, key, "a list", value);
    if (value.kind == core::Value::Kind::scalar && shape.format &&
        shape.format->accepts(value.scalar))
      diagnostics.back().suggestion = "did you mean `" + key + ": [\"" + value.scalar + "\"]`?";
    return std::nullopt;
  }
  json list = json::array();
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    const core::Value& item = value.items[i];
    const auto place = key + "[" + std::to_string(i) + "]";
    const bool is_object = shape.inside->kind == Kind::object;
    std::optional<json> read;
    if (item.kind == core::Value::Kind::scalar && shape.format) {
      if (shape.format->accepts(item.scalar))
        read = item.scalar;
      else
        report_type(diagnostics, place, std::string(shape.format->expected) + ", or a map", item);
    } else if (is_object && item.kind != core::Value::Kind::map) {
      report_type(diagnostics, place,
                  shape.format ? std::string(shape.format->expected) + ", or a map"
                               : std::string(shape.inside->name) + ", a map",
                  item);
    } else {
      read = decode_shape(place, item, *shape.inside, diagnostics);
    }
    if (read) list.push_back(std::move(*read));
  }
  return list;
}

std::optional<json> decode_parts(const std::string& key, const core::Value& value,
                                 const Shape& shape, Diagnostics& diagnostics) {
  if (!expect_map(key, value, diagnostics)) return std::nullopt;
  std::vector<std::string> keys;
  for (const Part& part : shape.parts) keys.emplace_back(part.key);
  report_unknown_keys(value, keys, std::string(shape.name) + " ('" + key + "')", diagnostics);
  json object = json::object();
  for (const Part& part : shape.parts) {
    const core::Value* member = value.find(part.key);
    if (member) {
      if (auto read = decode_shape(key + "." + part.key, *member, *part.shape, diagnostics))
        object[part.key] = std::move(*read);
    } else if (part.required) {
      report(diagnostics, "missing-key", "'" + key + "' lacks '" + part.key + "'", value.span);
    }
  }
  return object;
}

}  // namespace

std::optional<json> decode_shape(const std::string& key, const core::Value& value,
                                 const Shape& shape, Diagnostics& diagnostics) {
  const auto as_json = [](auto&& read) -> std::optional<json> {
    return read ? std::optional<json>(*read) : std::nullopt;
  };
  switch (shape.kind) {
    case Kind::any: return decode_any(key, value, diagnostics);
    case Kind::flag: return as_json(read_bool(key, value, diagnostics));
    case Kind::whole:
      if (value.kind == core::Value::Kind::scalar && !value.quoted)
        if (auto number = plain_to_json(value.scalar); number && number->is_number_integer())
          return number;
      report_type(diagnostics, key, "a whole number", value);
      return std::nullopt;
    case Kind::text: return as_json(read_text(key, value, *shape.format, diagnostics));
    case Kind::word: return decode_word(key, value, shape, diagnostics);
    case Kind::list: return decode_list(key, value, shape, diagnostics);
    case Kind::object: return decode_parts(key, value, shape, diagnostics);
    case Kind::map: break;
  }
  if (!expect_map(key, value, diagnostics)) return std::nullopt;
  json map = json::object();
  for (const auto& [name, member] : value.members)
    if (auto read = decode_shape(key + "." + name.scalar, member, *shape.inside, diagnostics))
      map[name.scalar] = std::move(*read);
  return map;
}

std::map<std::string, Json> decode_object(const std::string& key, const core::Value& value,
                                          const Shape& shape, Diagnostics& diagnostics) {
  std::map<std::string, Json> object;
  if (const auto read = decode_shape(key, value, shape, diagnostics))
    for (const auto& [name, member] : read->items()) object.emplace(name, member);
  return object;
}

json shape_schema(const Shape& shape) {
  if (shape.kind != Kind::list) return {{"type", "object"}};
  if (!shape.format) return {{"type", "array"}, {"items", {{"type", "object"}}}};
  json text{{"type", "string"}};
  if (shape.format->pattern) text["pattern"] = shape.format->pattern;
  return {{"type", "array"}, {"items", {{"anyOf", {text, {{"type", "object"}}}}}}};
}

}  // namespace pipeline::settings

#include "settings/settings.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "core/quantity.hpp"
#include "core/text.hpp"
#include "settings/accelerator.hpp"
#include "settings/contradictions.hpp"
#include "settings/decode.hpp"
#include "settings/fields.hpp"
#include "settings/other_names.hpp"
#include "settings/run_args.hpp"
#include "settings/snapshot.hpp"

namespace pipeline::settings {
namespace {

using nlohmann::json;
using JsonMap = std::map<std::string, Json>;

template <class T>
constexpr bool is_struct =
    std::is_same_v<T, BuildOptions> || std::is_same_v<T, BuildConfig> ||
    std::is_same_v<T, DockerSettings> || std::is_same_v<T, ResourceSettings> ||
    std::is_same_v<T, KubernetesResources> || std::is_same_v<T, KubernetesTopology> ||
    std::is_same_v<T, KubernetesSettings> || std::is_same_v<T, SlurmSettings> ||
    std::is_same_v<T, OomRetry>;

template <class T>
constexpr bool is_choice = false;
template <class Enum>
constexpr bool is_choice<std::optional<Enum>> = std::is_enum_v<Enum>;

template <class Enum>
void read_choice(std::optional<Enum>& member, std::string_view key, const core::Value& value,
                 Diagnostics& diagnostics) {
  std::vector<std::string> words;
  for (const auto& [word, each] : Choices<Enum>::words) {
    if (value.kind == core::Value::Kind::scalar && value.scalar == word) {
      member = each;
      return;
    }
    words.emplace_back(word);
  }
  report_type(diagnostics, key, Choices<Enum>::expected, value);
  if (value.kind == core::Value::Kind::scalar)
    diagnostics.back().suggestion = core::did_you_mean(value.scalar, words);
}

template <class Enum>
const char* word_of(Enum choice) {
  for (const auto& [word, each] : Choices<Enum>::words)
    if (each == choice) return word;
  return "";
}

template <class Owner>
const std::vector<std::string>& keys_of() {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> all;
    fields([&](const auto& field) { all.emplace_back(field.key); },
           static_cast<const Owner*>(nullptr));
    return all;
  }();
  return keys;
}

/// Returns true for a date, a date with a time, or an age with its unit.
bool is_age_or_date(std::string_view text) {
  if (text.find('-') != text.npos) return snapshot_id(text).has_value();
  return core::parse_duration(text) && !core::all(text, core::is_digit);
}

/// Decodes installer options: true or null for a flag, a scalar, or a list of scalars for a
/// repeated option.
JsonMap decode_installer_args(const core::Value& value, Diagnostics& diagnostics) {
  const std::string key = "python_package_installer_args";
  JsonMap decoded;
  if (!expect_map(key, value, diagnostics)) return decoded;
  const auto scalar = [&](const core::Value& item) -> std::optional<json> {
    if (item.kind == core::Value::Kind::list || item.kind == core::Value::Kind::map)
      report_type(diagnostics, key + " value", "a text, number, boolean, or a list of them", item);
    else if (!formats::line.accepts(item.scalar))
      report(diagnostics, "control-character",
             "a value of '" + key + "' has a line end or another control character in it",
             item.span);
    else if (auto read = scalar_to_json(item))
      return read;
    else
      report(diagnostics, "bad-number",
             "the number " + item.scalar + " is too large: put it in quotes", item.span);
    return std::nullopt;
  };
  for (const auto& [name, member] : value.members) {
    if (!formats::installer_option.accepts(name.scalar)) {
      report(diagnostics, "bad-name",
             "a key of '" + key + "' must be " + formats::installer_option.expected + ", not " +
                 describe(name),
             name.span);
    } else if (name.scalar == "exclude-newer" &&
               (member.kind != core::Value::Kind::scalar || !is_age_or_date(member.scalar))) {
      report_type(diagnostics, name.scalar, "an age such as `7d`, or a date such as `2026-11-20`",
                  member);
    } else if (member.kind == core::Value::Kind::list) {
      json list = json::array();
      for (const core::Value& item : member.items)
        if (auto read = scalar(item)) list.push_back(std::move(*read));
      decoded.emplace(name.scalar, std::move(list));
    } else if (auto read = scalar(member)) {
      decoded.emplace(name.scalar, std::move(*read));
    }
  }
  return decoded;
}

/// Returns the devices as the document has them; gpu_request() interprets them.
json read_devices(const core::Value& value, Diagnostics& diagnostics) {
  if (value.kind == core::Value::Kind::scalar) return scalar_to_json(value).value_or(value.scalar);
  if (value.kind != core::Value::Kind::list) {
    report_type(diagnostics, "devices", "a whole number, a text such as \"1, 3\", or a list",
                value);
    return nullptr;
  }
  json list = json::array();
  for (const core::Value& item : value.items) {
    if (item.kind == core::Value::Kind::scalar)
      list.push_back(scalar_to_json(item).value_or(item.scalar));
    else
      report(diagnostics, "wrong-type",
             "each of 'devices' must be an index, a UUID or a MIG device, not " + describe(item),
             item.span);
  }
  return list.size() == value.items.size() ? list : json();
}

/// Reads a list of expressions; ECS writes each as `{type: memberOf, expression: TEXT}`.
std::optional<std::vector<std::string>> read_constraints(const core::Value& value,
                                                         Diagnostics& diagnostics) {
  const std::string key = "placement_constraints";
  if (value.kind != core::Value::Kind::list)
    return read_texts(key, value, formats::word, diagnostics);
  std::vector<std::string> expressions;
  for (const core::Value& item : value.items) {
    if (item.kind != core::Value::Kind::map) {
      if (auto text = read_text(key, item, formats::word, diagnostics))
        expressions.push_back(std::move(*text));
      continue;
    }
    static const std::vector<std::string> keys{"type", "expression"};
    report_unknown_keys(item, keys, "an entry of '" + key + "'", diagnostics);
    const core::Value *type = item.find("type"), *expression = item.find("expression");
    if (type && type->scalar != "memberOf") {
      report(diagnostics, "wrong-type", "'type' must be memberOf, not " + describe(*type),
             type->span,
             {"ECS's other type, distinctInstance, is about several copies of one task; a step "
              "runs once"});
      continue;
    }
    if (!expression)
      report(diagnostics, "missing-key", "the constraint has no 'expression'", item.span,
             {"as in `attribute:ecs.instance-type == g5.xlarge`"});
    else if (auto text = read_text("expression", *expression, formats::word, diagnostics))
      expressions.push_back(std::move(*text));
  }
  return expressions;
}

template <class Owner>
Owner decode(const core::Value& value, std::string_view place, Diagnostics& diagnostics);

template <class Member, class FieldT>
void decode_member(Member& member, const FieldT& field, const core::Value& value,
                   Diagnostics& diagnostics) {
  if constexpr (is_struct<Member>)
    member = decode<Member>(value, field.key, diagnostics);
  else if constexpr (std::is_same_v<Member, std::optional<bool>>)
    member = read_bool(field.key, value, diagnostics);
  else if constexpr (std::is_same_v<Member, std::optional<Bytes>>)
    member = read_bytes(field.key, value, diagnostics);
  else if constexpr (std::is_same_v<Member, std::optional<unsigned>>)
    member = read_count(field.key, value, diagnostics);
  else if constexpr (std::is_same_v<Member, std::optional<double>>)
    member = read_number(field.key, value, *field.number_format, diagnostics);
  else if constexpr (std::is_same_v<Member, std::optional<Factor>>)
    member = read_factor(field.key, value, diagnostics);
  else if constexpr (std::is_same_v<Member, std::optional<Duration>>)
    member = read_duration(field.key, value, diagnostics);
  else if constexpr (std::is_same_v<Member, std::optional<std::string>>)
    member = read_text(field.key, value, *field.format, diagnostics);
  else if constexpr (std::is_same_v<Member, StringMap>)
    member = read_map(field.key, value, *field.key_format, *field.format, diagnostics)
                 .value_or(StringMap{});
  else if constexpr (std::is_same_v<Member, JsonMap>)
    member = field.shape        ? decode_object(field.key, value, *field.shape, diagnostics)
             : field.key_format ? decode_installer_args(value, diagnostics)
                                : decode_run_args(value, diagnostics);
  else if constexpr (is_choice<Member>)
    read_choice(member, field.key, value, diagnostics);
  else if constexpr (std::is_same_v<Member, Json>)
    member = field.shape
                 ? decode_shape(field.key, value, *field.shape, diagnostics).value_or(json())
                 : read_devices(value, diagnostics);
  else {
    static_assert(std::is_same_v<Member, StringList>);
    // A scalar is the name of a requirements file. spec/requirements_file.hpp reads the file,
    // because it knows the folder.
    if (std::string_view(field.key) == "requirements" && value.kind == core::Value::Kind::scalar) {
      read_text(field.key, value, formats::path, diagnostics);
    } else if (std::string_view(field.key) == "requirements" &&
               value.kind != core::Value::Kind::list) {
      report_type(diagnostics, field.key, "a list, or the name of a requirements file", value);
    } else if (std::string_view(field.key) == "placement_constraints") {
      if (auto expressions = read_constraints(value, diagnostics))
        member.emplace(std::move(*expressions));
    } else if (auto texts = read_texts(field.key, value, *field.format, diagnostics)) {
      member.emplace(std::move(*texts));
    }
  }
}

template <class Owner>
Owner decode(const core::Value& value, std::string_view place, Diagnostics& diagnostics) {
  Owner owner;
  if (!expect_map(place, value, diagnostics)) return owner;
  report_unknown_keys(value, keys_of<Owner>(), "'" + std::string(place) + "'", diagnostics,
                      other_names<Owner>);
  fields(
      [&](const auto& field) {
        if (const core::Value* member = value.find(field.key))
          decode_member(owner.*field.member, field, *member, diagnostics);
      },
      static_cast<const Owner*>(nullptr));
  return owner;
}

template <class Owner>
void merge_into(Owner& base, const Owner& over);

template <class Member>
void merge_member(Member& base, const Member& over) {
  if constexpr (is_struct<Member>)
    merge_into(base, over);
  else if constexpr (std::is_same_v<Member, StringMap> || std::is_same_v<Member, JsonMap>) {
    for (const auto& [key, value] : over) base.insert_or_assign(key, value);
  } else if constexpr (std::is_same_v<Member, Json>) {
    if (!over.is_null()) base = over;
  } else if (over.has_value()) {
    base = over;
  }
}

template <class Owner>
void merge_into(Owner& base, const Owner& over) {
  fields([&](const auto& field) { merge_member(base.*field.member, over.*field.member); },
         static_cast<const Owner*>(nullptr));
}

template <class Owner>
json write(const Owner& owner);

template <class Member>
json write_member(const Member& member) {
  if constexpr (is_struct<Member>)
    return write(member);
  else if constexpr (std::is_same_v<Member, StringMap> || std::is_same_v<Member, JsonMap>)
    return member.empty() ? json() : json(member);
  else if constexpr (is_choice<Member>)
    return member ? json(word_of(*member)) : json();
  else if constexpr (std::is_same_v<Member, Json>)
    return *member;
  else if constexpr (std::is_same_v<Member, std::optional<Duration>>)
    return member ? json(std::to_string(member->count()) + "ms") : json();
  else if constexpr (std::is_same_v<Member, std::optional<Factor>>)
    return member ? json("x" + json(member->value).dump()) : json();
  else if constexpr (std::is_same_v<Member, StringList>)
    return member ? json(member.items()) : json();
  else
    return member ? json(*member) : json();
}

template <class Owner>
json write(const Owner& owner) {
  json object;
  fields(
      [&](const auto& field) {
        if (json value = write_member(owner.*field.member); !value.is_null())
          object[field.key] = std::move(value);
      },
      static_cast<const Owner*>(nullptr));
  return object;
}

json text_schema(const Format& format) {
  json schema{{"type", "string"}};
  if (format.pattern) schema["pattern"] = format.pattern;
  return schema;
}

template <class Owner>
json struct_schema();

/// Keys whose texts often look like numbers; the text is kept as it was written.
constexpr std::array number_like_keys{"gpus", "compute_capability", "user", "nice"};

template <class Member, class FieldT>
json member_schema(const FieldT& field) {
  const json scalar{{"type", {"string", "number", "boolean"}}};
  if constexpr (is_struct<Member>)
    return struct_schema<Member>();
  else if constexpr (std::is_same_v<Member, std::optional<bool>>)
    return {{"type", "boolean"}};
  else if constexpr (std::is_same_v<Member, std::optional<Bytes>>)
    return bytes_schema();
  else if constexpr (std::is_same_v<Member, std::optional<unsigned>>)
    return {{"type", "integer"}, {"minimum", 0}, {"maximum", 1'000'000}};
  else if constexpr (std::is_same_v<Member, std::optional<Factor>>)
    return {{"type", "string"}, {"pattern", "^x[0-9]+(\\.[0-9]+)?$"}, {"examples", {"x2", "x1.5"}}};
  else if constexpr (std::is_same_v<Member, std::optional<Duration>>)
    return duration_schema();
  else if constexpr (std::is_same_v<Member, std::optional<std::string>>) {
    json schema = text_schema(*field.format);
    const auto& keys = number_like_keys;
    if (std::find(keys.begin(), keys.end(), std::string_view(field.key)) != keys.end())
      schema["type"] = json::array({"string", "number"});
    return schema;
  } else if constexpr (is_choice<Member>) {
    json words = json::array();
    for (const auto& [word, each] : Choices<typename Member::value_type>::words)
      words.push_back(*plain_to_json(word));
    return {{"enum", std::move(words)}};
  } else if constexpr (std::is_same_v<Member, Json>)
    return field.shape ? shape_schema(*field.shape)
                       : json{{"type", {"integer", "string", "array"}},
                              {"items", {{"type", {"integer", "string"}}}}};
  else if constexpr (std::is_same_v<Member, std::optional<double>>)
    return {{"type", "number"},
            {field.number_format->exclusive ? "exclusiveMinimum" : "minimum",
             field.number_format->minimum}};
  else if constexpr (std::is_same_v<Member, StringMap>)
    return {{"type", "object"},
            {"propertyNames", text_schema(*field.key_format)},
            {"additionalProperties", scalar}};
  else if constexpr (std::is_same_v<Member, JsonMap>) {
    if (field.shape) return shape_schema(*field.shape);
    if (!field.key_format) return run_args_schema();
    const json value{{"anyOf",
                      {{{"type", {"string", "number", "boolean", "null"}}},
                       {{"type", "array"}, {"items", scalar}}}}};
    return {{"type", "object"},
            {"propertyNames", text_schema(*field.key_format)},
            {"additionalProperties", value}};
  } else {
    const json list{{"type", "array"}, {"items", text_schema(*field.format)}};
    if (std::string_view(field.key) == "placement_constraints") {
      const json constraint{
          {"type", "object"},
          {"properties",
           {{"type", {{"const", "memberOf"}, {"description", "ECS's kind of constraint."}}},
            {"expression",
             {{"type", "string"}, {"description", "A condition that the host has to satisfy."}}}}},
          {"required", {"expression"}},
          {"additionalProperties", false}};
      return {{"type", "array"}, {"items", {{"anyOf", {text_schema(*field.format), constraint}}}}};
    }
    if (std::string_view(field.key) != "requirements") return list;
    return {{"anyOf", {list, text_schema(formats::path)}}};
  }
}

/// Returns the schema that also permits a text with `${params.X}`, which spec/placeholders.hpp
/// fills in.
json or_filled(json schema) {
  constexpr auto placeholder = "\\$\\{params\\.";
  if (schema.contains("pattern") &&
      schema["pattern"].get<std::string>().find("params") == std::string::npos)
    schema["pattern"] = schema["pattern"].get<std::string>() + "|" + placeholder;
  const auto type = schema.find("type");
  if (type == schema.end() || (*type != "integer" && *type != "number" && *type != "boolean"))
    return schema;
  schema["type"] = json::array({*type, "string"});
  schema["pattern"] = placeholder;
  return schema;
}

template <class Owner>
json struct_schema() {
  json properties = json::object();
  fields(
      [&](const auto& field) {
        using Member = std::remove_cvref_t<decltype(std::declval<Owner>().*field.member)>;
        json schema = or_filled(member_schema<Member>(field));
        schema["description"] = field.description;
        properties[field.key] = std::move(schema);
      },
      static_cast<const Owner*>(nullptr));
  return {
      {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
}

template <class Owner>
json object_of(const Owner& owner) {
  json object = write(owner);
  return object.is_null() ? json::object() : object;
}

}  // namespace

Settings decode_settings(const core::Value& value, Diagnostics& diagnostics) {
  Settings settings = decode<Settings>(value, "settings", diagnostics);
  check_contradictions(settings, value, diagnostics);
  return settings;
}

RetrySettings decode_retry(const core::Value& value, Diagnostics& diagnostics) {
  return decode<RetrySettings>(value, "retry", diagnostics);
}

Settings merge(const Settings& pipeline, const Settings& step) {
  Settings merged = pipeline;
  merge_into(merged, step);
  // `parent_image` and `dockerfile` exclude each other: a step's own parent image drops the
  // pipeline's Dockerfile.
  if (step.docker.parent_image) merged.docker.dockerfile.reset();
  if (step.docker.dockerfile) merged.docker.parent_image.reset();
  // `run_args` and `resources` both have `shm_size`: a step's own drops the pipeline's other one.
  if (step.resources.shm_size) merged.docker.run_args.erase("shm_size");
  if (step.docker.run_args.contains("shm_size")) merged.resources.shm_size.reset();
  merge_gpu_settings(merged.resources, pipeline.resources, step.resources);
  return merged;
}

RetrySettings merge(const RetrySettings& pipeline, const RetrySettings& step) {
  RetrySettings merged = pipeline;
  merge_into(merged, step);
  return merged;
}

json to_json(const Settings& settings) { return object_of(settings); }
json to_json(const DockerSettings& settings) { return object_of(settings); }
json to_json(const ResourceSettings& settings) { return object_of(settings); }

json to_json(const RetrySettings& settings) {
  json object = object_of(settings);
  if (object.contains("on_oom") && object["on_oom"].empty()) object.erase("on_oom");
  return object;
}

json settings_schema() { return struct_schema<Settings>(); }
json retry_schema() { return struct_schema<RetrySettings>(); }

json bytes_schema() {
  return {{"type", {"string", "integer"}},
          {"minimum", 1},
          {"pattern", "^[0-9]+(\\.[0-9]+)? ?([Bbkmgtp]|kB|[KMGTP](B|iB?))?$"},
          {"examples", {"512MB", "8GiB"}}};
}

json duration_schema() {
  return {{"type", {"string", "number"}},
          {"minimum", 0},
          {"pattern",
           "^[0-9]+(\\.[0-9]+)?((d|h|m|s|ms)([0-9]+(\\.[0-9]+)?(h|m|s|ms))*)?$|\\$\\{params\\."},
          {"examples", {"90s", "10m", "1h30m"}}};
}

}  // namespace pipeline::settings

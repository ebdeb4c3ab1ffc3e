#include "settings/settings.hpp"

#include <type_traits>

#include <nlohmann/json.hpp>

#include "settings/contradictions.hpp"
#include "settings/decode.hpp"
#include "settings/fields.hpp"
#include "settings/run_args.hpp"

namespace pipeline {
namespace {

using nlohmann::json;
using JsonMap = std::map<std::string, json>;

template <class T>
constexpr bool is_struct =
    std::is_same_v<T, BuildOptions> || std::is_same_v<T, BuildConfig> || std::is_same_v<T, DockerSettings> || std::is_same_v<T, ResourceSettings>;

template <class Owner>
const std::vector<std::string>& keys_of() {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> all;
    fields([&](const auto& field) { all.emplace_back(field.key); }, static_cast<const Owner*>(nullptr));
    return all;
  }();
  return keys;
}

/// Values of installer options: true or null for a flag, a scalar, or a list of scalars for an option that is repeated.
JsonMap decode_installer_args(const Value& value, Diagnostics& diagnostics) {
  const std::string key = "python_package_installer_args";
  JsonMap decoded;
  if (!expect_map(key, value, diagnostics)) return decoded;
  const auto scalar = [&](const Value& item) -> std::optional<json> {
    if (item.kind == Value::Kind::list || item.kind == Value::Kind::map)
      report_type(diagnostics, key + " value", "a text, number, boolean, or a list of them", item);
    else if (!formats::line.accepts(item.scalar))
      report(diagnostics, "control-character", "a value of '" + key + "' has a line end or another control character in it", item.span);
    else if (auto read = scalar_to_json(item))
      return read;
    else
      report(diagnostics, "bad-number", "the number " + item.scalar + " is too large: put it in quotes", item.span);
    return std::nullopt;
  };
  for (const auto& [name, member] : value.members) {
    if (!formats::installer_option.accepts(name.scalar)) {
      report(diagnostics, "bad-name", "a key of '" + key + "' must be " + formats::installer_option.expected + ", not " + describe(name), name.span);
    } else if (member.kind == Value::Kind::list) {
      json list = json::array();
      for (const Value& item : member.items)
        if (auto read = scalar(item)) list.push_back(std::move(*read));
      decoded.emplace(name.scalar, std::move(list));
    } else if (auto read = scalar(member)) {
      decoded.emplace(name.scalar, std::move(*read));
    }
  }
  return decoded;
}

template <class Owner>
Owner decode(const Value& value, std::string_view place, Diagnostics& diagnostics);

template <class Member, class FieldT>
void decode_member(Member& member, const FieldT& field, const Value& value, Diagnostics& diagnostics) {
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
  else if constexpr (std::is_same_v<Member, std::optional<Duration>>)
    member = read_duration(field.key, value, diagnostics);
  else if constexpr (std::is_same_v<Member, std::optional<std::string>>)
    member = read_text(field.key, value, *field.format, diagnostics);
  else if constexpr (std::is_same_v<Member, StringMap>)
    member = read_map(field.key, value, *field.key_format, *field.format, diagnostics).value_or(StringMap{});
  else if constexpr (std::is_same_v<Member, JsonMap>)
    member = field.key_format ? decode_installer_args(value, diagnostics) : decode_run_args(value, diagnostics);
  else if constexpr (std::is_same_v<Member, std::optional<PackageInstaller>>) {
    if (value.kind == Value::Kind::scalar && value.scalar == "uv")
      member = PackageInstaller::uv;
    else if (value.kind == Value::Kind::scalar && value.scalar == "pip")
      member = PackageInstaller::pip;
    else
      report_type(diagnostics, field.key, "`uv` or `pip`", value);
  } else {
    static_assert(std::is_same_v<Member, StringList>);
    // The name of a requirements file is no list: it is read by whoever knows the folder (spec/requirements_file.hpp).
    if (std::string_view(field.key) == "requirements" && value.kind == Value::Kind::scalar) {
      read_text(field.key, value, formats::path, diagnostics);
    } else if (std::string_view(field.key) == "requirements" && value.kind != Value::Kind::list) {
      report_type(diagnostics, field.key, "a list, or the name of a requirements file", value);
    } else if (auto texts = read_texts(field.key, value, *field.format, diagnostics)) {
      member.emplace(std::move(*texts));
    }
  }
}

template <class Owner>
Owner decode(const Value& value, std::string_view place, Diagnostics& diagnostics) {
  Owner owner;
  if (!expect_map(place, value, diagnostics)) return owner;
  report_unknown_keys(value, keys_of<Owner>(), "'" + std::string(place) + "'", diagnostics);
  fields(
      [&](const auto& field) {
        if (const Value* member = value.find(field.key)) decode_member(owner.*field.member, field, *member, diagnostics);
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
  } else if (over.has_value()) {
    base = over;
  }
}

template <class Owner>
void merge_into(Owner& base, const Owner& over) {
  fields([&](const auto& field) { merge_member(base.*field.member, over.*field.member); }, static_cast<const Owner*>(nullptr));
}

template <class Owner>
json write(const Owner& owner);

template <class Member>
json write_member(const Member& member) {
  if constexpr (is_struct<Member>)
    return write(member);
  else if constexpr (std::is_same_v<Member, StringMap> || std::is_same_v<Member, JsonMap>)
    return member.empty() ? json() : json(member);
  else if constexpr (std::is_same_v<Member, std::optional<PackageInstaller>>)
    return member ? json(*member == PackageInstaller::uv ? "uv" : "pip") : json();
  else if constexpr (std::is_same_v<Member, std::optional<Duration>>)
    return member ? json(member->count()) : json();
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
        if (json value = write_member(owner.*field.member); !value.is_null()) object[field.key] = std::move(value);
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

template <class Member, class FieldT>
json member_schema(const FieldT& field) {
  const json scalar{{"type", {"string", "number", "boolean"}}};
  if constexpr (is_struct<Member>)
    return struct_schema<Member>();
  else if constexpr (std::is_same_v<Member, std::optional<bool>>)
    return {{"type", "boolean"}};
  else if constexpr (std::is_same_v<Member, std::optional<Bytes>>)
    return {{"type", {"string", "integer"}}, {"examples", {"512MB", "8GiB"}}};
  else if constexpr (std::is_same_v<Member, std::optional<unsigned>>)
    return {{"type", "integer"}, {"minimum", 0}, {"maximum", 1'000'000}};
  else if constexpr (std::is_same_v<Member, std::optional<Duration>>)
    return {{"type", {"string", "number"}}, {"examples", {"90s", "10m"}}};
  else if constexpr (std::is_same_v<Member, std::optional<std::string>>)
    return text_schema(*field.format);
  else if constexpr (std::is_same_v<Member, std::optional<PackageInstaller>>)
    return {{"enum", {"uv", "pip"}}};
  else if constexpr (std::is_same_v<Member, std::optional<double>>)
    return {{"type", "number"}, {field.number_format->exclusive ? "exclusiveMinimum" : "minimum", field.number_format->minimum}};
  else if constexpr (std::is_same_v<Member, StringMap>)
    return {{"type", "object"}, {"propertyNames", text_schema(*field.key_format)}, {"additionalProperties", scalar}};
  else if constexpr (std::is_same_v<Member, JsonMap>) {
    if (!field.key_format) return run_args_schema();
    const json value{{"anyOf", {{{"type", {"string", "number", "boolean", "null"}}}, {{"type", "array"}, {"items", scalar}}}}};
    return {{"type", "object"}, {"propertyNames", text_schema(*field.key_format)}, {"additionalProperties", value}};
  } else {
    const json list{{"type", "array"}, {"items", text_schema(*field.format)}};
    if (std::string_view(field.key) != "requirements") return list;
    return {{"anyOf", {list, text_schema(formats::path)}}};
  }
}

template <class Owner>
json struct_schema() {
  json properties = json::object();
  fields(
      [&](const auto& field) {
        using Member = std::remove_cvref_t<decltype(std::declval<Owner>().*field.member)>;
        json schema = member_schema<Member>(field);
        schema["description"] = field.description;
        properties[field.key] = std::move(schema);
      },
      static_cast<const Owner*>(nullptr));
  return {{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
}

template <class Owner>
json object_of(const Owner& owner) {
  json object = write(owner);
  return object.is_null() ? json::object() : object;
}

}  // namespace

Settings decode_settings(const Value& value, Diagnostics& diagnostics) {
  Settings settings = decode<Settings>(value, "settings", diagnostics);
  check_contradictions(settings, value, diagnostics);
  return settings;
}

RetrySettings decode_retry(const Value& value, Diagnostics& diagnostics) { return decode<RetrySettings>(value, "retry", diagnostics); }

Settings merge(const Settings& pipeline, const Settings& step) {
  Settings merged = pipeline;
  merge_into(merged, step);
  // The two exclude each other: a step that names its own parent has done with the pipeline's, however that was given.
  if (step.docker.parent_image) merged.docker.dockerfile.reset();
  if (step.docker.dockerfile) merged.docker.parent_image.reset();
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

json settings_schema() { return struct_schema<Settings>(); }
json retry_schema() { return struct_schema<RetrySettings>(); }

}  // namespace pipeline

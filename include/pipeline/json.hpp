/// @file
/// Values as JSON: numbers, texts, lists, maps, optionals, pairs, tuples, plain structs of those, and every type with nlohmann's to_json and from_json.
#pragma once

#include <array>
#include <cmath>
#include <concepts>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <pipeline/fields.hpp>

namespace pipeline {

/// A JSON value that is not what the C++ type needs. `what()` says where in it: `.layers[2].size: expected an integer, found "big"`.
class JsonError : public std::runtime_error {
 public:
  using runtime_error::runtime_error;
};

namespace detail {

using nlohmann::json;

template <class T, template <class...> class Template>
inline constexpr bool is_a = false;
template <class... A, template <class...> class Template>
inline constexpr bool is_a<Template<A...>, Template> = true;
template <class T>
inline constexpr bool is_std_array = false;
template <class T, std::size_t N>
inline constexpr bool is_std_array<std::array<T, N>> = true;

template <class T>
concept ListLike = is_a<T, std::vector> || is_a<T, std::set> || is_std_array<T>;
template <class T>
concept MapLike = is_a<T, std::map> || is_a<T, std::unordered_map>;
template <class T>
concept TextMapLike = MapLike<T> && std::is_same_v<typename T::key_type, std::string>;
template <class T>
concept TupleLike = is_a<T, std::pair> || is_a<T, std::tuple>;
/// Has functions of its own, as NLOHMANN_DEFINE_TYPE_* writes them.
template <class T>
concept ConvertsItself = std::is_class_v<T> && requires(json& to, const json& from, const T& value, T& read) {
  to_json(to, value);
  from_json(from, read);
};
/// Has a specialisation of nlohmann::adl_serializer. Its general case takes containers, too, so anything with a begin() is left out.
template <class T>
concept HasSerializer = std::is_class_v<T> && !requires(const T& value) {
  value.begin();
}
&&requires(json& to, const json& from, const T& value) {
  nlohmann::adl_serializer<T, void>::to_json(to, value);
  { nlohmann::adl_serializer<T, void>::from_json(from) } -> std::same_as<T>;
};
template <class T>
concept Converted = ConvertsItself<T> || HasSerializer<T>;

template <class T>
constexpr bool json_able();

template <class T, std::size_t... I>
constexpr bool json_able_parts(std::index_sequence<I...>) {
  if constexpr (TupleLike<T>)
    return (json_able<std::tuple_element_t<I, T>>() && ...);
  else
    return (json_able<FieldType<T, I>>() && ...);
}

template <class T>
constexpr bool json_able() {
  if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string> || std::is_same_v<T, json>)
    return true;
  else if constexpr (is_a<T, std::optional> || ListLike<T>)
    return json_able<typename T::value_type>();
  else if constexpr (MapLike<T>)
    return json_able<typename T::key_type>() && json_able<typename T::mapped_type>();
  else if constexpr (TupleLike<T>)
    return json_able_parts<T>(std::make_index_sequence<std::tuple_size_v<T>>());
  else if constexpr (Converted<T>)
    return true;
  else if constexpr (PlainStruct<T>)
    return json_able_parts<T>(std::make_index_sequence<field_count<T>()>());
  else
    return false;
}

[[noreturn]] void json_mismatch(const std::string& place, const char* expected, const json& found);
/// A number that JSON has no literal for, from its name; false if the text is none.
bool special_number(const std::string& text, double& value);

template <class T>
json encode(const T& value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isfinite(value)) return value;
    return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
  } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string> || std::is_same_v<T, json>) {
    return value;
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<std::underlying_type_t<T>>(value);
  } else if constexpr (is_a<T, std::optional>) {
    return value ? encode(*value) : json();
  } else if constexpr (ListLike<T>) {
    json list = json::array();
    for (const typename T::value_type& item : value) list.push_back(encode(item));
    return list;
  } else if constexpr (TextMapLike<T>) {
    json object = json::object();
    for (const auto& [key, item] : value) object[key] = encode(item);
    return object;
  } else if constexpr (MapLike<T>) {
    json list = json::array();
    for (const auto& [key, item] : value) list.push_back(json::array({encode(key), encode(item)}));
    return list;
  } else if constexpr (TupleLike<T>) {
    json list = json::array();
    std::apply([&](const auto&... items) { (list.push_back(encode(items)), ...); }, value);
    return list;
  } else if constexpr (Converted<T>) {
    return json(value);
  } else {
    json object = json::object();
    for_each_field(value, [&](auto, std::string_view name, const auto& field) { object[std::string(name)] = encode(field); });
    return object;
  }
}

template <class T>
T decode(const json& from, const std::string& place = {});

template <class T, std::size_t... I>
T decode_tuple(const json& from, const std::string& place, std::index_sequence<I...>) {
  return T{decode<std::tuple_element_t<I, T>>(from[I], place + "[" + std::to_string(I) + "]")...};
}

template <class T, std::size_t... I>
T decode_struct(const json& from, const std::string& place, std::index_sequence<I...>) {
  static const json none;
  const auto member = [&](std::string_view name) -> const json& {
    const auto found = from.find(name);
    return found == from.end() ? none : *found;
  };
  return T{decode<FieldType<T, I>>(member(field_name<T, I>()), place + "." + std::string(field_name<T, I>()))...};
}

template <class T>
T decode(const json& from, const std::string& place) {
  if constexpr (std::is_same_v<T, json>) {
    return from;
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!from.is_boolean()) json_mismatch(place, "true or false", from);
    return from.get<bool>();
  } else if constexpr (std::is_integral_v<T>) {
    if (from.is_number_float() && std::trunc(from.get<double>()) == from.get<double>() && std::abs(from.get<double>()) < 9e15)
      return decode<T>(json(static_cast<std::int64_t>(from.get<double>())), place);  // 1e6
    if (!from.is_number_integer()) json_mismatch(place, "an integer", from);
    const bool fits = from.is_number_unsigned()
                          ? std::in_range<std::conditional_t<std::is_same_v<T, char>, signed char, T>>(from.get<std::uint64_t>())
                          : std::in_range<std::conditional_t<std::is_same_v<T, char>, signed char, T>>(from.get<std::int64_t>());
    if (!fits) json_mismatch(place, sizeof(T) < 8 ? "a smaller integer" : "an integer of 64 bits", from);
    return from.get<T>();
  } else if constexpr (std::is_floating_point_v<T>) {
    double special = 0;
    if (from.is_string() && special_number(from.get_ref<const std::string&>(), special)) return static_cast<T>(special);
    if (!from.is_number()) json_mismatch(place, "a number", from);
    return from.get<T>();
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<T>(decode<std::underlying_type_t<T>>(from, place));
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!from.is_string()) json_mismatch(place, "a text", from);
    return from.get<std::string>();
  } else if constexpr (is_a<T, std::optional>) {
    return from.is_null() ? T() : T(decode<typename T::value_type>(from, place));
  } else if constexpr (is_std_array<T>) {
    if (!from.is_array() || from.size() != std::tuple_size_v<T>) json_mismatch(place, "a list of the array's length", from);
    T items{};
    for (std::size_t i = 0; i < items.size(); ++i) items[i] = decode<typename T::value_type>(from[i], place + "[" + std::to_string(i) + "]");
    return items;
  } else if constexpr (ListLike<T>) {
    if (!from.is_array()) json_mismatch(place, "a list", from);
    T items;
    for (std::size_t i = 0; i < from.size(); ++i)
      items.insert(items.end(), decode<typename T::value_type>(from[i], place + "[" + std::to_string(i) + "]"));
    return items;
  } else if constexpr (TextMapLike<T>) {
    if (!from.is_object()) json_mismatch(place, "a map", from);
    T items;
    for (const auto& [key, item] : from.items()) items.emplace(key, decode<typename T::mapped_type>(item, place + "." + key));
    return items;
  } else if constexpr (MapLike<T>) {
    T items;
    for (auto& [key, item] : decode<std::vector<std::pair<typename T::key_type, typename T::mapped_type>>>(from, place))
      items.emplace(std::move(key), std::move(item));
    return items;
  } else if constexpr (TupleLike<T>) {
    if (!from.is_array() || from.size() != std::tuple_size_v<T>) json_mismatch(place, "a list of the tuple's length", from);
    return decode_tuple<T>(from, place, std::make_index_sequence<std::tuple_size_v<T>>());
  } else if constexpr (Converted<T>) {
    try {
      return from.get<T>();
    } catch (const json::exception& error) { throw JsonError((place.empty() ? "" : place + ": ") + error.what()); }
  } else {
    if (!from.is_object()) json_mismatch(place, "a map", from);
    return decode_struct<T>(from, place, std::make_index_sequence<field_count<T>()>());
  }
}

}  // namespace detail

/// What can be a parameter of a step: a number, text, list, map, optional, pair, tuple, plain struct of those, or a type with to_json and from_json.
template <class T>
concept JsonAble = detail::json_able<T>();

}  // namespace pipeline

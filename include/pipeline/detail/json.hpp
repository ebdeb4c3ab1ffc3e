/// @file
/// Converts between C++ types and JSON values. The templates only walk the members of a type; the
/// code that uses nlohmann's library is compiled once, in core.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <pipeline/detail/callback.hpp>
#include <pipeline/detail/fields.hpp>

namespace pipeline {

class Json;

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
concept TupleLike = is_a<T, std::pair> || is_a<T, std::tuple>;

/// Converts to `json&`. Argument-dependent lookup for `json` itself also finds the functions that
/// nlohmann's library has for all containers and texts since version 3.11.3; lookup for a
/// JsonReference does not.
struct JsonReference {
  operator json&() const;
};
/// A type that has the functions which NLOHMANN_DEFINE_TYPE_* defines. If the type has a begin(),
/// the functions must take nlohmann::json itself: nlohmann's templates for containers do not count.
template <class T>
concept ConvertsItself = std::is_class_v<T> && std::is_default_constructible_v<T> &&
    requires(json& to, const json& from, const T& value, T& read) {
  to_json(to, value);
  from_json(from, read);
} &&(
    !requires(const T& value) { value.begin(); } ||
    requires(const JsonReference& to, const T& value) { to_json(to, value); });
/// A container into which items can be inserted, such as those of the standard library. Strings are
/// not containers here.
template <class T>
concept Container = !ConvertsItself<T> && !std::is_same_v<T, json> && !requires {
  typename T::traits_type;
}
&&requires(T& container, typename T::value_type item) {
  container.insert(container.end(), std::move(item));
  container.begin();
};
/// A container that maps each key to one value.
template <class T>
concept MapLike = Container<T> && requires(T& map, const typename T::key_type& key) {
  { map[key] } -> std::same_as<typename T::mapped_type&>;
};
template <class T>
concept TextMapLike = MapLike<T> && std::is_same_v<typename T::key_type, std::string>;
template <class T>
concept ListLike = is_std_array<T> ||(Container<T> && !requires { typename T::mapped_type; });

/// A type that has a specialisation of nlohmann::adl_serializer. Types with a begin() are excluded,
/// because the primary template of adl_serializer accepts containers, too.
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

/// True for structs that name a file, a folder or an output: JSON would hold the name, without the
/// content.
template <class T>
inline constexpr bool names_file = false;

template <class T>
constexpr bool json_able() {
  // First, because names_file<T> needs the complete type, and `json` is incomplete in a program
  // that does not include nlohmann's header.
  if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string> ||
                std::is_same_v<T, Json> || std::is_same_v<T, json>)
    return true;
  else if constexpr (names_file<T>)
    return false;
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

/// Position of a value in a JSON document, for messages. Each link refers to the one above it,
/// which lives on the caller's stack.
struct JsonPath {
  const JsonPath* parent = nullptr;
  std::string_view member = {};  ///< Default-constructed for an item of a list.
  std::size_t item = 0;
};

// Operations on JSON values, so that templates do not need the complete type.
void put_boolean(json& to, bool value);
void put_integer(json& to, std::int64_t value);
void put_unsigned(json& to, std::uint64_t value);
/// NaN and the infinities are stored as the texts NaN, Infinity and -Infinity, as JSON lacks them.
void put_number(json& to, double value);
void put_text(json& to, std::string_view value);
void put_json(json& to, const json& value);
void move_json(json& to, json& from);
void put_list(json& to);
void put_map(json& to);
json& add_item(json& list);
json& add_member(json& map, std::string_view name);

// list_size(), the get_ and the check_ functions throw JsonError if the value is of another kind
// than the function's name says, or outside of the limits that are passed. The other functions do
// not check.
bool is_null(const json& from);
bool get_boolean(const json& from, const JsonPath& path);
std::int64_t get_integer(const json& from, const JsonPath& path, std::int64_t least,
                         std::int64_t most);
std::uint64_t get_unsigned(const json& from, const JsonPath& path, std::uint64_t most);
double get_number(const json& from, const JsonPath& path);
const std::string& get_text(const json& from, const JsonPath& path);
std::size_t list_size(const json& from, const JsonPath& path);
void check_list(const json& from, const JsonPath& path, std::size_t length, const char* expected);
void check_map(const json& from, const JsonPath& path);
const json& item_of(const json& list, std::size_t i);
/// Returns the member of the map; a JSON null if the map does not have it.
const json& member_of(const json& map, std::string_view name);
void each_member(const json& map, Callback<const std::string&, const json&> visit);
/// Calls `conversion`, and converts nlohmann's exceptions to JsonError.
void convert(const JsonPath& path, Callback<> conversion);

template <class T>
void encode(const T& value, json& to);
template <class T>
T decode(const json& from, const JsonPath& path = {});

template <class T>
void encode(const T& value, json& to) {
  if constexpr (std::is_same_v<T, json>) {
    put_json(to, value);
  } else if constexpr (std::is_same_v<T, Json>) {
    put_json(to, *value);
  } else if constexpr (std::is_same_v<T, bool>) {
    put_boolean(to, value);
  } else if constexpr (std::is_floating_point_v<T>) {
    put_number(to, static_cast<double>(value));
  } else if constexpr (std::is_unsigned_v<T>) {
    put_unsigned(to, value);
  } else if constexpr (std::is_integral_v<T>) {
    put_integer(to, value);
  } else if constexpr (std::is_enum_v<T>) {
    encode(static_cast<std::underlying_type_t<T>>(value), to);
  } else if constexpr (std::is_same_v<T, std::string>) {
    put_text(to, value);
  } else if constexpr (is_a<T, std::optional>) {
    if (value) encode(*value, to);
  } else if constexpr (ListLike<T>) {
    put_list(to);
    for (const typename T::value_type& item : value) encode(item, add_item(to));
  } else if constexpr (TextMapLike<T>) {
    put_map(to);
    for (const auto& [key, item] : value) encode(item, add_member(to, key));
  } else if constexpr (MapLike<T>) {
    put_list(to);
    for (const auto& [key, item] : value) {
      json& pair = add_item(to);
      put_list(pair);
      encode(key, add_item(pair));
      encode(item, add_item(pair));
    }
  } else if constexpr (TupleLike<T>) {
    put_list(to);
    std::apply([&](const auto&... items) { (encode(items, add_item(to)), ...); }, value);
  } else if constexpr (ConvertsItself<T>) {
    to_json(to, value);
  } else if constexpr (HasSerializer<T>) {
    nlohmann::adl_serializer<T, void>::to_json(to, value);
  } else {
    put_map(to);
    for_each_field(value, [&](auto, std::string_view name, const auto& field) {
      encode(field, add_member(to, name));
    });
  }
}

template <class T, std::size_t... I>
T decode_tuple(const json& from, const JsonPath& path, std::index_sequence<I...>) {
  return T{decode<std::tuple_element_t<I, T>>(item_of(from, I), JsonPath{&path, {}, I})...};
}

template <class T, std::size_t... I>
T decode_struct(const json& from, const JsonPath& path, std::index_sequence<I...>) {
  return T{decode<FieldType<T, I>>(member_of(from, field_name<T, I>()),
                                   JsonPath{&path, field_name<T, I>()})...};
}

template <class T>
T decode(const json& from, const JsonPath& path) {
  if constexpr (std::is_same_v<T, json>) {
    return from;
  } else if constexpr (std::is_same_v<T, Json>) {
    return T(from);
  } else if constexpr (std::is_same_v<T, bool>) {
    return get_boolean(from, path);
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(get_number(from, path));
  } else if constexpr (std::is_unsigned_v<T>) {
    return static_cast<T>(get_unsigned(from, path, std::numeric_limits<T>::max()));
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(
        get_integer(from, path, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<T>(decode<std::underlying_type_t<T>>(from, path));
  } else if constexpr (std::is_same_v<T, std::string>) {
    return get_text(from, path);
  } else if constexpr (is_a<T, std::optional>) {
    return is_null(from) ? T() : T(decode<typename T::value_type>(from, path));
  } else if constexpr (is_std_array<T>) {
    check_list(from, path, std::tuple_size_v<T>, "a list of the array's length");
    T items{};
    for (std::size_t i = 0; i < items.size(); ++i)
      items[i] = decode<typename T::value_type>(item_of(from, i), JsonPath{&path, {}, i});
    return items;
  } else if constexpr (ListLike<T>) {
    T items;
    for (std::size_t i = 0, size = list_size(from, path); i < size; ++i)
      items.insert(items.end(),
                   decode<typename T::value_type>(item_of(from, i), JsonPath{&path, {}, i}));
    return items;
  } else if constexpr (TextMapLike<T>) {
    check_map(from, path);
    T items;
    each_member(from, [&](const std::string& key, const json& item) {
      items.emplace(key, decode<typename T::mapped_type>(item, JsonPath{&path, key}));
    });
    return items;
  } else if constexpr (MapLike<T>) {
    T items;
    for (auto& [key, item] :
         decode<std::vector<std::pair<typename T::key_type, typename T::mapped_type>>>(from, path))
      items.emplace(std::move(key), std::move(item));
    return items;
  } else if constexpr (TupleLike<T>) {
    check_list(from, path, std::tuple_size_v<T>, "a list of the tuple's length");
    return decode_tuple<T>(from, path, std::make_index_sequence<std::tuple_size_v<T>>());
  } else if constexpr (ConvertsItself<T>) {
    T value;
    convert(path, [&] { from_json(from, value); });
    return value;
  } else if constexpr (HasSerializer<T>) {
    std::optional<T> value;
    convert(path, [&] { value.emplace(nlohmann::adl_serializer<T, void>::from_json(from)); });
    return std::move(*value);
  } else {
    check_map(from, path);
    return decode_struct<T>(from, path, std::make_index_sequence<field_count<T>()>());
  }
}

}  // namespace detail
}  // namespace pipeline

/// @file
/// How the built-in codecs choose the form of a type, and the files that they read and write.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <pipeline/array.hpp>
#include <pipeline/json.hpp>

namespace pipeline {

template <class T>
struct Codec;

namespace detail {

/// Same as pipeline::Storable, for use before its definition.
template <class T>
concept HasCodec = requires(const T& value, const std::string& path) {
  Codec<T>::save(value, path);
  { Codec<T>::load(path) } -> std::same_as<T>;
};

/// The built-in form of a type: JSON text, NumPy array, a folder with an entry for each member, or
/// a folder with an entry for each item.
enum class Form { none, text, array, fields, sequence };

template <class T>
constexpr Form form_of();

template <class T, std::size_t... I>
constexpr bool all_storable(std::index_sequence<I...>) {
  return (HasCodec<FieldType<T, I>> && ...);
}
template <class T, std::size_t... I>
constexpr bool all_json(std::index_sequence<I...>) {
  return ((form_of<FieldType<T, I>>() == Form::text) && ...);
}

template <class T>
constexpr Form form_of() {
  if constexpr (is_a<T, std::vector>) {
    using Item = typename T::value_type;
    if constexpr (ArrayElement<Item>)
      return Form::array;
    else if constexpr (json_able<Item>())
      return Form::text;
    else if constexpr (HasCodec<Item>)
      return Form::sequence;
    else
      return Form::none;
  } else if constexpr (TupleLike<T> || ListLike<T> || MapLike<T> || is_a<T, std::optional> ||
                       Converted<T> || !std::is_class_v<T>) {
    return json_able<T>() ? Form::text : Form::none;
  } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, Json> ||
                       std::is_same_v<T, json>) {
    return Form::text;
  } else if constexpr (PlainStruct<T>) {
    constexpr auto all = std::make_index_sequence<field_count<T>()>();
    if constexpr (all_json<T>(all))
      return Form::text;
    else
      return all_storable<T>(all) ? Form::fields : Form::none;
  } else {
    return Form::none;
  }
}

Json read_json(const std::string& file);
void write_json(const Json& value, const std::string& file);
/// Throws CodecError with the file's name before the text of the JsonError that is being handled.
[[noreturn]] void wrong_json(const std::string& file, const JsonError& error);
/// Returns true if the name ends with `.json`.
bool is_json_name(const std::string& file);
/// Returns true if the file begins with `[`.
bool has_json_list(const std::string& file);
void make_folder(const std::string& folder);
bool exists(const std::string& path);
/// Moves the file that a step returns to the output's path; copies a file that is read-only or
/// cannot be moved. Throws CodecError, also if there is no file.
void put_file(const std::string& from, const std::string& to);
/// Does the same for a folder.
void put_folder(const std::string& from, const std::string& to);

template <class T>
constexpr std::string_view extension_of() {
  if constexpr (requires { std::string_view(Codec<T>::extension); })
    return Codec<T>::extension;
  else
    return {};
}

/// Returns the path of a T in the folder of an artifact that has several entries.
std::string entry_path(const std::string& folder, std::string_view name,
                       std::string_view extension);

template <class T>
std::string entry(const std::string& folder, std::string_view name) {
  return entry_path(folder, name, extension_of<T>());
}

}  // namespace detail
}  // namespace pipeline

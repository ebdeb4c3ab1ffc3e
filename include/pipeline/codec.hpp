/// @file
/// How a type is stored as an artifact. Built in: numbers, texts, vectors, maps, optionals, pairs,
/// tuples and plain structs of those, types with nlohmann's to_json and from_json, arrays, files
/// and folders. For a type of your own, specialise pipeline::Codec.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <pipeline/array.hpp>
#include <pipeline/json.hpp>

namespace pipeline {

/// How artifacts of type T go to disk and come back.
///
/// ```cpp
/// template <>
/// struct pipeline::Codec<Model> {
///   static constexpr std::string_view extension = ".model";       // optional: of the file's name
///   static void save(const Model& model, const std::string& to);  // makes a file or a folder at
///   `to`, which is not there yet static Model load(const std::string& from);                   //
///   `from` is read-only
/// };
/// ```
/// Paths are std::string in these headers; where yours are std::filesystem::path, as these
/// parameters may be, each becomes the other by itself. Both may throw anything: it becomes the
/// step's failure, with the name of the artifact.
template <class T>
struct Codec;

/// True for a type that can be the result or an input of a step.
template <class T>
concept Storable = requires(const T& value, const std::string& path) {
  Codec<T>::save(value, path);
  { Codec<T>::load(path) } -> std::same_as<T>;
};

/// A file as it is. As a result: one that the step has written anywhere, which is moved into the
/// store. As an input: read-only.
struct File {
  std::string path;
};

/// A folder with all that is in it; else as File.
struct Folder {
  std::string path;
};

/// Opts a struct in to be several results, one for each member, under the members' names:
/// `template <> inline constexpr bool pipeline::is_outputs<Split> = true;`. Otherwise a plain
/// struct is one artifact.
template <class T>
inline constexpr bool is_outputs = false;

namespace detail {

enum class Form { none, text, array, fields, sequence };

template <class T>
constexpr Form form_of();

template <class T, std::size_t... I>
constexpr bool all_storable(std::index_sequence<I...>) {
  return (Storable<FieldType<T, I>> && ...);
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
    else if constexpr (Storable<Item>)
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
/// Throws CodecError with the file's name before the text of the JsonError in flight.
[[noreturn]] void wrong_json(const std::string& file, const JsonError& error);
void make_folder(const std::string& folder);
bool exists(const std::string& path);
/// Moves where that is possible, else copies; keeps what is read-only where it is. Throws
/// CodecError.
void put_file(const std::string& from, const std::string& to, bool folder);

template <class T>
constexpr std::string_view extension_of() {
  if constexpr (requires { std::string_view(Codec<T>::extension); })
    return Codec<T>::extension;
  else
    return {};
}

/// The file or folder of a T in the folder of what has several.
template <class T>
std::string entry(std::string folder, std::string_view name) {
  return folder.append("/").append(name).append(extension_of<T>());
}

}  // namespace detail

/// What JSON can say is a .json file that people and other languages read.
template <class T>
requires(detail::form_of<T>() == detail::Form::text) struct Codec<T> {
  static constexpr std::string_view extension = ".json";
  static void save(const T& value, const std::string& to) { detail::write_json(Json(value), to); }
  static T load(const std::string& from) {
    try {
      return detail::decode<T>(*detail::read_json(from));
    } catch (const JsonError& error) {
      detail::wrong_json(from, error);
    }
  }
};

/// Vectors of numbers, and of structs that can be copied as bytes: NumPy's .npy, one write, one
/// read.
template <class T>
requires(detail::form_of<T>() == detail::Form::array) struct Codec<T> {
  using Item = typename T::value_type;
  static constexpr std::string_view extension = ".npy";
  static void save(const T& value, const std::string& to) {
    detail::write_array(to, detail::element_descr<Item>(), {value.size()}, value.data(),
                        value.size() * sizeof(Item));
  }
  static T load(const std::string& from) {
    T value;
    detail::read_array(from, detail::element_descr<Item>(), sizeof(Item),
                       [&](std::size_t count) -> void* {
                         value.resize(count);
                         return value.data();
                       });
    return value;
  }
};

/// A plain struct that JSON cannot hold: a folder with an entry for each member.
template <class T>
requires(detail::form_of<T>() == detail::Form::fields) struct Codec<T> {
  static void save(const T& value, const std::string& to) {
    detail::make_folder(to);
    detail::for_each_field(value, [&]<class F>(auto, std::string_view name, const F& field) {
      Codec<F>::save(field, detail::entry<F>(to, name));
    });
  }
  static T load(const std::string& from) {
    return load(from, std::make_index_sequence<detail::field_count<T>()>());
  }

 private:
  template <std::size_t... I>
  static T load(const std::string& from, std::index_sequence<I...>) {
    return T{member<I>(from)...};
  }
  template <std::size_t I>
  static detail::FieldType<T, I> member(const std::string& from) {
    using F = detail::FieldType<T, I>;
    return Codec<F>::load(detail::entry<F>(from, detail::field_name<T, I>()));
  }
};

/// Vectors of what has a codec of its own: a folder with the entries 0, 1, 2, ...
template <class T>
requires(detail::form_of<T>() == detail::Form::sequence) struct Codec<T> {
  using Item = typename T::value_type;
  static void save(const T& value, const std::string& to) {
    detail::make_folder(to);
    for (std::size_t i = 0; i < value.size(); ++i)
      Codec<Item>::save(value[i], detail::entry<Item>(to, std::to_string(i)));
  }
  static T load(const std::string& from) {
    T value;
    const auto next = [&] { return detail::entry<Item>(from, std::to_string(value.size())); };
    while (detail::exists(next())) value.push_back(Codec<Item>::load(next()));
    return value;
  }
};

template <class T>
struct Codec<Array<T>> {
  static constexpr std::string_view extension = ".npy";
  static void save(const Array<T>& value, const std::string& to) { value.save(to); }
  static Array<T> load(const std::string& from) { return Array<T>::map(from); }
};

template <>
struct Codec<File> {
  static void save(const File& value, const std::string& to) {
    detail::put_file(value.path, to, false);
  }
  static File load(const std::string& from) { return {from}; }
};

template <>
struct Codec<Folder> {
  static void save(const Folder& value, const std::string& to) {
    detail::put_file(value.path, to, true);
  }
  static Folder load(const std::string& from) { return {from}; }
};

}  // namespace pipeline

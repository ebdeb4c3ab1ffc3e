/// @file
/// How the types of artifacts are stored. Built in are numbers, texts, containers, optionals,
/// pairs, tuples and plain structs of those, types with nlohmann's to_json and from_json, arrays,
/// files and folders. For other types, specialise pipeline::Codec.
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <pipeline/array.hpp>
#include <pipeline/detail/codec.hpp>
#include <pipeline/json.hpp>

namespace pipeline {

/// Stores artifacts of type T and loads them again. A specialisation of your own:
///
/// ```cpp
/// template <>
/// struct pipeline::Codec<Model> {
///   // Optional: the extension of the file name.
///   static constexpr std::string_view extension = ".model";
///   // Creates a file or a folder at `to`, which does not exist.
///   static void save(const Model& model, const std::string& to);
///   // `from` is read-only.
///   static Model load(const std::string& from);
/// };
/// ```
/// The paths are std::string; the parameters may also be std::filesystem::path. An exception of
/// either function becomes the step's failure, with the name of the artifact.
template <class T>
struct Codec;

/// True for the types of a step's artifacts: those with a Codec.
template <class T>
concept Storable = detail::HasCodec<T>;

/// A file. As a result: a file that the step has written where it can also read, such as in
/// StepContext::scratch(); it is moved into the store. As an argument: read-only.
struct File {
  std::string path;
};

/// A folder and everything in it. As a result it is moved into the store; as an argument it is
/// read-only.
struct Folder {
  std::string path;
};

template <>
inline constexpr bool detail::names_file<File> = true;
template <>
inline constexpr bool detail::names_file<Folder> = true;

/// Makes each member of a plain struct a result of its own, under the member's name: `template <>
/// inline constexpr bool pipeline::is_outputs<Split> = true;`. Without it, a plain struct is one
/// artifact.
template <class T>
inline constexpr bool is_outputs = false;

/// Types that convert to JSON are stored as a .json file, which other languages can read.
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

/// Vectors of numbers, or of structs of numbers, are stored as NumPy's .npy, in one write and one
/// read; as JSON, if map() makes an instance for each item.
template <class T>
requires(detail::form_of<T>() == detail::Form::array) struct Codec<T> {
  using Item = typename T::value_type;
  static constexpr std::string_view extension = ".npy";
  static void save(const T& value, const std::string& to) {
    if constexpr (detail::json_able<Item>())
      if (detail::is_json_name(to)) return detail::write_json(Json(value), to);
    const std::size_t shape[] = {value.size()};
    detail::write_array(to, detail::element_type<Item>, shape, value.data());
  }
  static T load(const std::string& from) {
    if constexpr (detail::json_able<Item>()) {
      if (detail::has_json_list(from)) try {
          return detail::decode<T>(*detail::read_json(from));
        } catch (const JsonError& error) {
          detail::wrong_json(from, error);
        }
    }
    T value;
    detail::read_array(from, detail::element_type<Item>, &value,
                       [](void* vector, std::size_t count) -> void* {
                         auto& items = *static_cast<T*>(vector);
                         items.resize(count);
                         return items.data();
                       });
    return value;
  }
};

/// Plain structs that JSON cannot represent are stored as a folder with an entry for each member.
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

/// Vectors of types with a codec of their own are stored as a folder with the entries 0, 1, 2, ...
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
  static void save(const File& value, const std::string& to) { detail::put_file(value.path, to); }
  static File load(const std::string& from) { return {from}; }
};

template <>
struct Codec<Folder> {
  static void save(const Folder& value, const std::string& to) {
    detail::put_folder(value.path, to);
  }
  static Folder load(const std::string& from) { return {from}; }
};

}  // namespace pipeline

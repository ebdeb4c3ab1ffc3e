/// @file
/// JSON values, and the C++ types that convert to and from them. nlohmann's library stores the
/// values. Its header is not included here, because it takes longer to compile than all others
/// together: a program that uses its types includes <nlohmann/json.hpp> itself.
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

#include <pipeline/detail/json.hpp>
#include <pipeline/rare.hpp>

namespace pipeline {

/// True for the types of a step's parameters: numbers, texts, enums, lists, maps, optionals, pairs,
/// tuples, plain structs of those, and types with nlohmann's to_json and from_json.
template <class T>
concept JsonAble = detail::json_able<T>();

/// A JSON value that does not fit the C++ type. `what()` names the member: `.layers[2].size:
/// expected an integer, found "big"`.
class JsonError : public std::runtime_error {
 public:
  using runtime_error::runtime_error;
};

/// Any JSON value, written as in nlohmann's library: `8`, `"text"`, `{0.1, 1.0}` for a list,
/// `{{"epoch", 3}, {"loss", 0.25}}` for an object. A program that includes <nlohmann/json.hpp>
/// reads it as `*value` or `value->dump()`.
class Json {
 public:
  /// Makes a JSON null.
  Json() noexcept;
  Json(std::nullptr_t) noexcept;
  Json(const char* text);
  Json(std::string_view text);
  template <JsonAble T>
  Json(const T& value) : Json() {
    detail::encode(value, **this);
  }
  template <std::same_as<nlohmann::json> J>
  // NOLINTNEXTLINE(bugprone-forwarding-reference-overload): the concept excludes Json itself.
  Json(J&& value) : Json() {
    detail::move_json(**this, value);
  }
  /// Makes an object if each item is a list of two whose first is a text; otherwise a list.
  Json(std::initializer_list<Json> items);
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(Json other) noexcept;
  ~Json();

  bool is_null() const;
  nlohmann::json& operator*();
  const nlohmann::json& operator*() const;
  nlohmann::json* operator->() { return &**this; }
  const nlohmann::json* operator->() const { return &**this; }
  friend bool operator==(const Json& a, const Json& b);

  /// Called by nlohmann's library, which does not consider conversions.
  template <std::same_as<Json> J>
  friend void to_json(nlohmann::json& to, const J& value) {
    detail::put_json(to, *value);
  }

  /// The user's text of each number that JSON would write in another way, such as `3.10`, which
  /// JSON writes as 3.1. The keys are paths in the value: `lr`, `layers.0`, empty for the value
  /// itself. A command's words and variables get this text.
  Rare<std::map<std::string, std::string>> written;

 private:
  /// An nlohmann::json, whose type is not complete here. In the object, because each step of a
  /// large pipeline has some values.
  alignas(8) std::byte value_[16];
};

}  // namespace pipeline

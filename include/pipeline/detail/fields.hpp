/// @file
/// The members of a plain struct and their names, determined at compile time without a macro or
/// registration. For structs of up to 16 members without base classes.
#pragma once

#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace pipeline::detail {

/// Stands for a member of any type; never evaluated.
struct Anything {
  template <class T>
  operator T() const;
};

/// Returns true if a T can be made from as many members as there are indices.
template <class T, std::size_t... I>
constexpr bool takes(std::index_sequence<I...>) {
  return requires { T{((void)I, Anything{})...}; };
}

inline constexpr std::size_t max_fields = 16;

/// The number of members of an aggregate; 0 if it has more than max_fields.
template <class T, std::size_t N = max_fields>
constexpr std::size_t field_count() {
  if constexpr (N == max_fields && takes<T>(std::make_index_sequence<N + 1>()))
    return 0;
  else if constexpr (N == 0 || takes<T>(std::make_index_sequence<N>()))
    return N;
  else
    return field_count<T, N - 1>();
}

template <class T>
concept PlainStruct = std::is_class_v<T> && std::is_aggregate_v<T> && !std::is_empty_v<T> &&
                      std::is_move_constructible_v<T> && field_count<std::remove_cv_t<T>>() > 0;

/// References to the members.
template <class T>
constexpr auto tie_fields(T& value) {
  constexpr std::size_t fields = field_count<std::remove_cv_t<T>>();
  if constexpr (fields == 1) {
    auto& [a] = value;
    return std::tie(a);
  } else if constexpr (fields == 2) {
    auto& [a, b] = value;
    return std::tie(a, b);
  } else if constexpr (fields == 3) {
    auto& [a, b, c] = value;
    return std::tie(a, b, c);
  } else if constexpr (fields == 4) {
    auto& [a, b, c, d] = value;
    return std::tie(a, b, c, d);
  } else if constexpr (fields == 5) {
    auto& [a, b, c, d, e] = value;
    return std::tie(a, b, c, d, e);
  } else if constexpr (fields == 6) {
    auto& [a, b, c, d, e, f] = value;
    return std::tie(a, b, c, d, e, f);
  } else if constexpr (fields == 7) {
    auto& [a, b, c, d, e, f, g] = value;
    return std::tie(a, b, c, d, e, f, g);
  } else if constexpr (fields == 8) {
    auto& [a, b, c, d, e, f, g, h] = value;
    return std::tie(a, b, c, d, e, f, g, h);
  } else if constexpr (fields == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = value;
    return std::tie(a, b, c, d, e, f, g, h, i);
  } else if constexpr (fields == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (fields == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k);
  } else if constexpr (fields == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l);
  } else if constexpr (fields == 13) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m);
  } else if constexpr (fields == 14) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n);
  } else if constexpr (fields == 15) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o);
  } else if constexpr (fields == 16) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
  }
}

template <class T>
using FieldTypes = decltype(tie_fields(std::declval<T&>()));
template <class T, std::size_t I>
using FieldType = std::remove_cvref_t<std::tuple_element_t<I, FieldTypes<T>>>;

/// Holds a T. `nowhere` is declared and never defined, so that T needs no default constructor: only
/// the addresses of its members are used.
template <class T>
struct Holder {
  T value;
};
#pragma GCC diagnostic push
#ifdef __clang__
#pragma GCC diagnostic ignored "-Wundefined-var-template"
// Also for types in anonymous namespaces, such as a step's outputs in a program of one file.
#pragma GCC diagnostic ignored "-Wundefined-internal"
#endif
template <class T>
extern const Holder<T> nowhere;

template <class T>
struct MemberAddress {
  const T* address;
};

/// The compiler's text ends in `::NAME)}...` (g++) or `.NAME}...` (clang).
template <auto A>
constexpr std::string_view text_of_address() {
  return __PRETTY_FUNCTION__;
}

template <class T, std::size_t I>
constexpr std::string_view field_name() {
  // No variable for the address, because unoptimized code would then need the object's definition.
  constexpr std::string_view text =
      text_of_address<MemberAddress<FieldType<T, I>>{&std::get<I>(tie_fields(nowhere<T>.value))}>();
#ifdef __clang__
  constexpr auto end = text.rfind('}');
#else
  constexpr auto end = text.rfind(")}");
#endif
  constexpr auto before = text.find_last_of(":.", end);
  return text.substr(before + 1, end - before - 1);
}
#pragma GCC diagnostic pop

/// Calls `visit(index, name, reference)` for each member; the index is an integral_constant.
template <class T, class Visit>
constexpr void for_each_field(T& value, Visit&& visit) {
  using Plain = std::remove_cv_t<T>;
  auto references = tie_fields(value);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (visit(std::integral_constant<std::size_t, I>(), field_name<Plain, I>(),
           std::get<I>(references)),
     ...);
  }
  (std::make_index_sequence<field_count<Plain>()>());
}

}  // namespace pipeline::detail

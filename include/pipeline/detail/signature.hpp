/// @file
/// A function's parameters and results, as types and as data.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <source_location>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <pipeline/codec.hpp>
#include <pipeline/detail/declaration.hpp>

namespace pipeline {

class StepContext;

namespace detail {

template <class T>
using Stored = std::remove_cvref_t<T>;

template <class T>
inline constexpr bool is_context = std::is_same_v<Stored<T>, StepContext>;

/// The compiler's name of a type.
template <class T>
consteval std::string_view type_name() {
  constexpr std::string_view text = __PRETTY_FUNCTION__;
  constexpr auto begin = text.find("T = ") + 4;
  constexpr auto end = text.find(';', begin);  // g++ adds `; std::string_view = ...`.
  return text.substr(begin, (end == text.npos ? text.size() - 1 : end) - begin);
}

template <auto A>
consteval std::string_view text_of_value() {
  return __PRETTY_FUNCTION__;
}

/// Returns `train` for `&(anonymous namespace)::train`.
template <auto F>
consteval std::string_view name_of_function() {
  constexpr std::string_view text = text_of_value<F>();
  constexpr auto end = text.find_first_of(";]", text.find("A = ") + 4);
  constexpr auto begin = text.find_last_of(": =&", end - 1) + 1;
  return text.substr(begin, end - begin);
}

template <class F>
struct Signature;
template <class R, class... A>
struct Signature<R (*)(A...)> {
  using type = R(A...);
};
template <class R, class... A>
struct Signature<R (*)(A...) noexcept> {
  using type = R(A...);
};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) const> {
  using type = R(A...);
};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...)> {
  using type = R(A...);
};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) const noexcept> {
  using type = R(A...);
};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) noexcept> {
  using type = R(A...);
};

template <class F>
auto signature_of() {
  if constexpr (std::is_pointer_v<F>) {
    static_assert(std::is_function_v<std::remove_pointer_t<F>>,
                  "pipeline: step() takes a function, or an object that can be called");
    return std::type_identity<typename Signature<F>::type>();
  } else {
    static_assert(
        requires { &F::operator(); },
        "pipeline: step() takes a function or a lambda whose parameters have types: `auto` does "
        "not name the type that is stored");
    return std::type_identity<typename Signature<decltype(&F::operator())>::type>();
  }
}

/// Calls a stateless function object; a new object is equivalent.
template <class F, class R, class... A>
R call_object(A... arguments) {
  if constexpr (std::is_default_constructible_v<F>) {
    return F()(std::forward<A>(arguments)...);
  } else {
    auto object = std::bit_cast<F>(char());
    return object(std::forward<A>(arguments)...);
  }
}

/// The types of the results of a function, one for each artifact.
template <class R>
struct ResultTypes {
  using type = std::tuple<R>;
  static constexpr bool is_one = true;
};
template <>
struct ResultTypes<void> {
  using type = std::tuple<>;
  static constexpr bool is_one = false;
};
template <class... T>
struct ResultTypes<std::tuple<T...>> {
  using type = std::tuple<T...>;
  static constexpr bool is_one = false;
};
template <class A, class B>
struct ResultTypes<std::pair<A, B>> : ResultTypes<std::tuple<A, B>> {};
template <class R>
requires(is_outputs<R>&& PlainStruct<R>) struct ResultTypes<R> {
  template <std::size_t... I>
  static std::tuple<FieldType<R, I>...> types(std::index_sequence<I...>);
  using type = decltype(types(std::make_index_sequence<field_count<R>()>()));
  static constexpr bool is_one = false;
};

template <class T>
consteval void check_result() {
  static_assert(Storable<T>,
                "pipeline: this result of a step has no pipeline::Codec: specialise it, give the "
                "type nlohmann's to_json and from_json, or return a plain "
                "struct of types that can be stored");
}

template <class R, std::size_t I>
consteval std::string_view result_name() {
  if constexpr (ResultTypes<R>::is_one)
    return "result";
  else if constexpr (TupleLike<R>)
    return {};
  else
    return field_name<R, I>();
}

template <class R>
consteval auto results_of() {
  if constexpr (is_outputs<R>)
    static_assert(PlainStruct<R>, "pipeline: is_outputs is for plain structs of up to 16 members");
  return []<class... T, std::size_t... I>(std::type_identity<std::tuple<T...>>,
                                          std::index_sequence<I...>) {
    (check_result<T>(), ...);
    return std::array<ResultInfo, sizeof...(T)>{
        ResultInfo{result_name<R, I>(), extension_of<T>()}...};
  }(std::type_identity<typename ResultTypes<R>::type>(),
         std::make_index_sequence<std::tuple_size_v<typename ResultTypes<R>::type>>());
}

template <class R>
inline constexpr auto results = results_of<R>();

/// @param name the step's name, unless the options name it
template <template <class> class Step, class F>
auto make_function_step(F function, std::string_view name, const StepOptions& options,
                        std::source_location where) {
  static_assert(std::is_pointer_v<F> || std::is_empty_v<F>,
                "pipeline: the lambda of a step may capture nothing, since captures are not part "
                "of the step's key: pass them as arguments");
  return [&]<class R, class... A>(std::type_identity<R(A...)>) {
    static_assert(((is_context<A> || !std::is_lvalue_reference_v<A> ||
                    std::is_const_v<std::remove_reference_t<A>>)&&...),
                  "pipeline: a step's function takes its arguments by value or by const reference; "
                  "only StepContext& is not const");
    R (*pointer)(A...) = nullptr;
    if constexpr (std::is_pointer_v<F>)
      pointer = function;
    else
      pointer = &call_object<F, R, A...>;
    return Step<R(A...)>(FunctionInfo{reinterpret_cast<AnyFunction>(pointer), name,
                                      type_name<R(A...)>(), results<Stored<R>>},
                         options, where);
  }(signature_of<F>());
}

}  // namespace detail
}  // namespace pipeline

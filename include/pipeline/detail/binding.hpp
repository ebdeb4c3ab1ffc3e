/// @file
/// Binds the arguments of add() and map() to the function's parameters: the compiler checks them,
/// then they are recorded.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <pipeline/artifact.hpp>
#include <pipeline/detail/entry.hpp>
#include <pipeline/step.hpp>

namespace pipeline::detail {

// The names and parameters of these functions appear in the compiler's message.
template <int Number, class Given, class Wanted>
consteval void argument_fits() {
  static_assert(!std::is_same_v<Given, Given>,
                "pipeline: the artifact is of another type than the function's argument");
}
template <int Number, class Given, class Wanted>
consteval void parameter_fits() {
  static_assert(
      !std::is_same_v<Given, Given>,
      "pipeline: the value cannot be this argument of the function without losing something");
}
template <int Given, int Wanted>
consteval void number_of_arguments() {
  static_assert(Given == Wanted,
                "pipeline: add() needs one artifact or value for each argument of the function, "
                "StepContext left out");
}
template <class T>
consteval void artifact_can_be_read() {
  static_assert(Storable<T>,
                "pipeline: this argument takes an artifact, but its type has no pipeline::Codec");
}
template <class T>
consteval void parameter_can_be_written() {
  static_assert(JsonAble<T>,
                "pipeline: a value for this argument has to be one that JSON can hold; pass an "
                "artifact, or give the type to_json and from_json");
}

template <class T>
inline constexpr bool is_artifact_tuple = false;
template <class... T>
inline constexpr bool is_artifact_tuple<std::tuple<Artifact<T>...>> = sizeof...(T) > 0;

/// A range of single artifacts, such as std::vector<Artifact<T>>.
template <class G>
concept ArtifactRange = requires {
  typename G::value_type::type;
  requires is_a<typename G::value_type, Artifact>;
};

template <class V>
inline constexpr bool is_bool = std::is_same_v<V, bool>;

/// `type` is T, or U for a std::optional<U>: the optional's constructor converts a value to U
/// without a warning, so U is the type to check.
template <class T>
struct OptionalValue {
  using type = T;
};
template <class U>
struct OptionalValue<std::optional<U>> {
  using type = U;
};

/// False if a V loses something when it becomes a T: a fraction as a whole number, a number as a
/// bool or the reverse, a text as a bool. check_value() checks the limits of integers.
template <class V, class T>
concept FitsValue = !(std::is_floating_point_v<V> && std::is_integral_v<T>)&&(
    !std::is_arithmetic_v<V> || !std::is_arithmetic_v<T> ||
    is_bool<V> == is_bool<T>)&&!(std::is_pointer_v<std::decay_t<V>> && is_bool<T>);

/// True if a V converts to a T without loss.
template <class V, class T>
concept Fits = std::is_convertible_v<V, T> && FitsValue<V, typename OptionalValue<T>::type>;

/// The type of the value or values given for a parameter.
template <class G>
struct GivenValue {
  using type = G;
};
template <class T>
struct GivenValue<Each<T>> {
  using type = T;
};
template <class T>
struct GivenValue<Parameter<T>> {
  using type = T;
};

/// True for the handle of one vector, whose items map() can pass to instances.
template <class G>
inline constexpr bool is_vector_artifact = false;
template <class T>
inline constexpr bool is_vector_artifact<Artifact<std::vector<T>>> = true;

/// True if map() passes the items of the vector that G names, one to each instance.
template <bool IsMap, class T, class G>
inline constexpr bool passes_items = IsMap&& std::is_same_v<G, Artifact<std::vector<T>>>;

/// Checks that G can be given for T, and returns the source of the argument.
template <bool IsMap, int Number, class T, class G>
consteval Slot slot_of() {
  if constexpr (is_a<G, Artifacts>) {
    if constexpr (std::is_same_v<std::vector<typename G::type>, T>) {
      artifact_can_be_read<typename G::type>();
      return Slot::gathered;
    } else if constexpr (IsMap && std::is_same_v<typename G::type, T>) {
      artifact_can_be_read<T>();
    } else {
      argument_fits<Number, G, T>();
    }
    return Slot::artifact;
  } else if constexpr (is_a<G, Artifact>) {
    if constexpr (passes_items<IsMap, T, G>) {
      artifact_can_be_read<T>();
      // Items that JSON cannot hold are files.
      return json_able<T>() ? Slot::parameter : Slot::artifact;
    } else if constexpr (std::is_same_v<typename G::type, T>) {
      artifact_can_be_read<T>();
    } else {
      argument_fits<Number, G, T>();
    }
    return Slot::artifact;
  } else if constexpr (ArtifactRange<G>) {
    if constexpr (std::is_same_v<std::vector<typename G::value_type::type>, T>)
      artifact_can_be_read<typename G::value_type::type>();
    else
      argument_fits<Number, G, T>();
    return Slot::gathered;
  } else if constexpr (Handle<typename GivenValue<G>::type> || is_artifact_tuple<G>) {
    argument_fits<Number, G, T>();
    return Slot::artifact;
  } else {
    using V = typename GivenValue<G>::type;
    if constexpr (Fits<V, T>)
      parameter_can_be_written<T>();
    else
      parameter_fits<Number, V, T>();
    return Slot::parameter;
  }
}

/// Throws JsonError for a value that does not fit T.
template <class T>
void check_value(const json& value) {
  decode<T>(value);
}

/// Converts the value to the parameter's type, as JSON. Integers are not converted: the conversion
/// would change a number that T cannot hold, before check_value() can refuse it.
template <class T, class V>
Json value_as(const V& value) {
  using U = typename OptionalValue<T>::type;
  if constexpr (std::is_same_v<T, std::string> && std::is_convertible_v<const V&, std::string_view>)
    return std::string_view(value);
  else if constexpr (std::is_integral_v<U> && std::is_integral_v<V>)
    return Json(value);
  else
    return Json(static_cast<T>(value));
}

template <bool IsMap, class T, Slot S, class G>
void bind(StepDeclaration& step, const G& given) {
  constexpr ArgumentType type{type_name<T>(), std::is_same_v<T, std::string>};
  step.argument(S, type, is_a<G, Each> || passes_items<IsMap, T, G>);
  if constexpr (passes_items<IsMap, T, G>) {
    step.items(given);
  } else if constexpr (S == Slot::parameter) {
    if constexpr (is_a<G, Each>) {
      for (const auto& value : given.values) step.value(value_as<T>(value));
    } else if constexpr (is_a<G, Parameter>) {
      step.value(value_as<T>(given.value), given.name);
    } else {
      step.value(value_as<T>(given));
    }
    step.check(&check_value<T>);
  } else if constexpr (is_a<G, Artifacts>) {
    step.source(given, S == Slot::gathered ? "[*]" : "[=]");
  } else if constexpr (S == Slot::gathered) {
    for (const auto& artifact : given) step.source(artifact);
  } else {
    step.source(given);
  }
}

/// Returns for each parameter the index of its argument. A StepContext has no argument: its index
/// is not used.
template <class... A>
consteval auto given_indices() {
  std::array<std::size_t, sizeof...(A) + 1> indices{};
  [[maybe_unused]] std::size_t parameter = 0, given = 0;
  ((indices[parameter++] = given, given += !is_context<A>), ...);
  return indices;
}

/// The type of the argument at an index.
template <std::size_t I, class... G>
using GivenAt = std::tuple_element_t<I, std::tuple<G..., void>>;

template <bool IsMap, class A, std::size_t I, class... G>
consteval Slot checked_slot() {
  if constexpr (is_context<A>)
    return Slot::context;
  else
    return slot_of<IsMap, static_cast<int>(I) + 1, Stored<A>, GivenAt<I, G...>>();
}

template <bool IsMap, class A, std::size_t I, Slot S, class... G>
void bind_at(StepDeclaration& step, const void* const* given) {
  if constexpr (S == Slot::context)
    step.argument(S, {});
  else
    bind<IsMap, Stored<A>, S>(step, *static_cast<const GivenAt<I, G...>*>(given[I]));
}

/// Binds each parameter of R(A...) to its argument, and records the step's entry function.
template <bool IsMap, class R, class... A, class... G>
void bind_all(StepDeclaration& step, const G&... given) {
  constexpr int wanted = (int{!is_context<A>} + ... + 0);
  number_of_arguments<static_cast<int>(sizeof...(G)), wanted>();
  if constexpr (sizeof...(G) == wanted) {
    [[maybe_unused]] const void* all[] = {std::addressof(given)..., nullptr};
    [&]<std::size_t... P>(std::index_sequence<P...>) {
      [[maybe_unused]] constexpr auto index = given_indices<A...>();
      using Sources = SlotList<checked_slot<IsMap, A, index[P], G...>()...>;
      (bind_at<IsMap, A, index[P], checked_slot<IsMap, A, index[P], G...>(), G...>(step, all), ...);
      step.entry(&enter_function<Sources, R, A...>);
    }
    (std::index_sequence_for<A...>());
  }
}

/// Returns the handle or handles of a step's results. @tparam Handle Artifact, or Artifacts for a
/// mapped step
template <class R, template <class> class Handle>
auto handles_of(const Declaration& step) {
  return [&]<class... T>(std::type_identity<std::tuple<T...>>) {
    if constexpr (sizeof...(T) == 0) {
      return StepHandle{name_of(step)};
    } else if constexpr (ResultTypes<Stored<R>>::is_one) {
      return Handle<T...>{result_of(step, 0)};
    } else {
      std::size_t i = 0;
      return std::tuple<Handle<T>...>{Handle<T>{result_of(step, i++)}...};
    }
  }(std::type_identity<typename ResultTypes<Stored<R>>::type>());
}

}  // namespace pipeline::detail

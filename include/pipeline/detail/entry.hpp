/// @file
/// Executes a function step: reads its arguments, calls the function and stores its results.
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <pipeline/codec.hpp>
#include <pipeline/context.hpp>
#include <pipeline/detail/declaration.hpp>
#include <pipeline/detail/signature.hpp>

namespace pipeline::detail {

/// The environment of an entry function: paths, values and the current action.
class StepRun : public StepContext {
 public:
  /// Returns the path of the argument's artifact.
  virtual std::string input(std::size_t argument) const = 0;
  /// Returns the paths of a gathered argument's artifacts, in order.
  virtual std::vector<std::string> inputs(std::size_t argument) const = 0;
  /// Returns the argument's value. @param is_text the text itself is the value; otherwise it is
  /// parsed as JSON
  virtual Json parameter(std::size_t argument, bool is_text) const = 0;
  /// Returns the path at which the result is stored.
  virtual std::string output(std::size_t result) const = 0;
  /// Records the current action for the message of a failure. @param what a string literal; empty:
  /// the function itself
  virtual void doing(const char* what, std::size_t index) = 0;
  virtual ~StepRun() = default;
};

template <class T, Slot S>
T load_argument(StepRun& run, std::size_t index) {
  if constexpr (S == Slot::parameter) {
    run.doing("reading its parameter", index);
    return decode<T>(*run.parameter(index, std::is_same_v<T, std::string>));
  } else if constexpr (S == Slot::artifact) {
    run.doing("reading its argument", index);
    return Codec<T>::load(run.input(index));
  } else {
    run.doing("reading its argument", index);
    T items;
    for (const auto& path : run.inputs(index))
      items.push_back(Codec<typename T::value_type>::load(path));
    return items;
  }
}

/// An argument of type T in memory.
template <std::size_t I, class T, Slot S>
struct Loaded {
  Stored<T> value;
  explicit Loaded(StepRun& run) : value(load_argument<Stored<T>, S>(run, I)) {}
  T get() {
    if constexpr (std::is_lvalue_reference_v<T>)
      return value;
    else
      return std::move(value);
  }
};
template <std::size_t I, class T>
struct Loaded<I, T, Slot::context> {
  StepContext& context;
  explicit Loaded(StepRun& run) : context(run) {}
  StepContext& get() { return context; }
};

/// All arguments, read in order.
template <class... Argument>
struct AllLoaded : Argument... {
  explicit AllLoaded(StepRun& run) : Argument(run)... {}
};

template <class T>
void save_result(StepRun& run, std::size_t index, const T& value) {
  run.doing("storing its result", index);
  Codec<T>::save(value, run.output(index));
}

template <class R>
void save_results(StepRun& run, const R& results) {
  std::size_t index = 0;
  if constexpr (TupleLike<R>)
    std::apply([&](const auto&... values) { (save_result(run, index++, values), ...); }, results);
  else if constexpr (is_outputs<R>)
    for_each_field(results, [&](auto, std::string_view, const auto& value) {
      save_result(run, index++, value);
    });
  else
    save_result(run, index, results);
}

/// The source of each argument. (std::integer_sequence takes integers only.)
template <Slot... S>
struct SlotList {};

template <class R, class... A, Slot... S, std::size_t... I>
void enter(R (*function)(A...), StepRun& run, SlotList<S...>, std::index_sequence<I...>) {
  [[maybe_unused]] AllLoaded<Loaded<I, A, S>...> arguments(run);
  run.doing("", 0);
  if constexpr (std::is_void_v<R>)
    function(static_cast<Loaded<I, A, S>&>(arguments).get()...);
  else
    save_results<Stored<R>>(run, function(static_cast<Loaded<I, A, S>&>(arguments).get()...));
}

template <class Sources, class R, class... A>
void enter_function(AnyFunction function, StepRun& run) {
  enter(reinterpret_cast<R (*)(A...)>(function), run, Sources(), std::index_sequence_for<A...>());
}

}  // namespace pipeline::detail

/// @file
/// Steps before they are in a pipeline: functions, commands and scripts, with their options; and
/// the handles of what they make.
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <pipeline/codec.hpp>
#include <pipeline/context.hpp>
#include <pipeline/execution.hpp>
#include <pipeline/settings.hpp>

namespace pipeline {

/// A handle of what a step will make; cheap to copy. Holds no data.
struct AnyArtifact {
  std::string step;
  std::string output;
};

/// A handle of a step's output of type T.
template <class T>
struct Artifact : AnyArtifact {
  using type = T;
};

/// A handle of the outputs that the instances of a mapped step make, in order. To a function that
/// takes a T, map() gives one each; to one that takes a std::vector<T>, add() gives all of them.
template <class T>
struct Artifacts : AnyArtifact {
  using type = T;
};

/// A parameter of the pipeline, which `--param NAME=VALUE` sets. Made by param().
template <class T>
struct Parameter {
  std::string name;
  T value;
};

/// A parameter of the pipeline. @param value without `--param`
/// `pipeline.add(pl::step(train), data, pl::param("epochs", 20))`
template <JsonAble T>
Parameter<T> param(std::string name, T value) {
  return {std::move(name), std::move(value)};
}
inline Parameter<std::string> param(std::string name, const char* value) {
  return {std::move(name), value};
}

/// Values of which map() gives each to an instance of its own. Made by each().
template <class T>
struct Each {
  std::vector<T> values;
};

/// `pipeline.map(pl::step(train), data, pl::each({0.1, 1.0, 10.0}))`: three steps.
template <class T>
Each<T> each(std::vector<T> values) {
  return {std::move(values)};
}
template <class T>
Each<T> each(std::initializer_list<T> values) {
  return {values};
}

/// An output of a command: its name, and the name of the file if that has to be another: `.outputs
/// = {"metrics", {"picture", "plot.png"}}`.
struct Output {
  std::string name;
  std::string file_name;
  Output(const char* output) : Output(std::string(output)) {}
  Output(std::string output) : Output(output, output) {}
  Output(std::string output, std::string file)
      : name(std::move(output)), file_name(std::move(file)) {}
};

/// What a step may say besides what it does; every field has the meaning and the name that it has
/// in YAML, and may be left out.
struct StepOptions {
  std::string name =
      {};  ///< Letters, digits, `_` and `-`. Default: the function's name, for `pl::step<train>()`.
  std::string description = {};
  std::vector<std::string> arguments = {};  ///< Names of the function's arguments, in order,
                                            ///< contexts left out. Default: arg1, arg2, ...
  std::vector<Output> outputs = {};  ///< Names of the results. Default: `result`, or result1,
                                     ///< result2, ...; a command's: those in it.
  std::map<std::string, Json> parameters = {};  ///< Of a command.
  Json matrix = {};  ///< Of a command, as in YAML: `{{"c", {0.1, 1.0}}}`, or the name of a step
                     ///< whose matrix it has too.
  std::vector<std::string> after =
      {};  ///< Steps that must have succeeded first, besides those whose artifacts it takes.
  StringList code = {};  ///< Files, folders and globs that the step sees. Default: those that a
                         ///< command names; none for a function.
  StepEnvironment environment = {};
  std::vector<SecretSpec> secrets = {};
  DockerSettings docker = {};          ///< `settings.docker`
  ResourceSettings resources = {};     ///< `settings.resources`
  KubernetesSettings kubernetes = {};  ///< `settings.kubernetes`
  RetrySettings retry = {};
  std::optional<Duration> timeout = {};  ///< Of one attempt.
  std::optional<bool> cache = {};
  std::string orchestrator =
      {};  ///< Where the step runs, if elsewhere than the run: `local`, `docker` or `kubernetes`.
  std::string version = {};  ///< Of a function: if given, the step is run again when this changes,
                             ///< and not when the program is rebuilt.
};

namespace detail {

/// What the entry of a step gives to the function that is called.
class StepRun : public StepContext {
 public:
  /// Where the argument's artifact is; for a gathered one, all of them.
  virtual std::string input(std::size_t argument) const = 0;
  virtual std::vector<std::string> inputs(std::size_t argument) const = 0;
  /// The argument's value: text as it stands for texts, else JSON.
  virtual Json parameter(std::size_t argument, bool is_text) const = 0;
  virtual std::string output(std::size_t result) const = 0;
  /// What is being done, for the message of a failure.
  /// @param what a text that lasts; empty: the function itself
  virtual void doing(const char* what, std::size_t index) = 0;
  virtual ~StepRun() = default;
};

/// The compiler's name of a type as a user would write it.
std::string tidy_type(std::string_view name);

template <class T>
std::string type_name() {
  constexpr std::string_view text = __PRETTY_FUNCTION__;
  constexpr auto begin = text.find("T = ") + 4;
  constexpr auto end =
      std::min(text.find(';', begin), text.size() - 1);  // g++ adds `; std::string = ...`
  return tidy_type(text.substr(begin, end - begin));
}

/// What remains of `Model train(const Dataset&)` when it is called with values out of files.
template <class T>
using Stored = std::remove_cvref_t<T>;

template <class T>
inline constexpr bool is_context = std::is_same_v<Stored<T>, StepContext>;

template <auto A>
constexpr std::string_view text_of_value() {
  return __PRETTY_FUNCTION__;
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

template <class F>
auto signature_of() {
  if constexpr (std::is_pointer_v<F>) {
    static_assert(std::is_function_v<std::remove_pointer_t<F>>,
                  "pipeline: step() takes a function, or an object that can be called");
    return std::type_identity<typename Signature<F>::type>();
  } else {
    static_assert(
        requires { &F::operator(); },
        "pipeline: step() takes a function or a lambda whose parameters have types: `auto` says "
        "nothing of what is stored");
    return std::type_identity<typename Signature<decltype(&F::operator())>::type>();
  }
}

/// The types of the results of a function, one artifact each.
template <class R>
struct Results {
  using type = std::tuple<R>;
  static constexpr bool is_one = true;
};
template <>
struct Results<void> {
  using type = std::tuple<>;
  static constexpr bool is_one = false;
};
template <class... T>
struct Results<std::tuple<T...>> {
  using type = std::tuple<T...>;
  static constexpr bool is_one = false;
};
template <class A, class B>
struct Results<std::pair<A, B>> : Results<std::tuple<A, B>> {};
template <class R>
requires(is_outputs<R>&& PlainStruct<R>) struct Results<R> {
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
                "struct of what can be stored");
}

template <class R>
void check_results() {
  if constexpr (std::is_void_v<R>) {
  } else if constexpr (TupleLike<R>) {
    []<std::size_t... I>(std::index_sequence<I...>) {
      (check_result<std::tuple_element_t<I, R>>(), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<R>>());
  } else if constexpr (is_outputs<R>) {
    static_assert(PlainStruct<R>, "pipeline: is_outputs is for plain structs of up to 16 members");
    []<std::size_t... I>(std::index_sequence<I...>) { (check_result<FieldType<R, I>>(), ...); }
    (std::make_index_sequence<field_count<R>()>());
  } else {
    check_result<R>();
  }
}

/// File names' extensions and default names of the results.
struct ResultInfo {
  std::string name, extension;
};

template <class R>
std::vector<ResultInfo> results_of() {
  std::vector<ResultInfo> all;
  if constexpr (std::is_void_v<R>) {
  } else if constexpr (TupleLike<R>) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (all.push_back({"result" + std::to_string(I + 1),
                      std::string(extension_of<std::tuple_element_t<I, R>>())}),
       ...);
    }
    (std::make_index_sequence<std::tuple_size_v<R>>());
  } else if constexpr (is_outputs<R>) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (all.push_back(
           {std::string(field_name<R, I>()), std::string(extension_of<FieldType<R, I>>())}),
       ...);
    }
    (std::make_index_sequence<field_count<R>()>());
  } else {
    all.push_back({"result", std::string(extension_of<R>())});
  }
  return all;
}

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

enum class Slot { artifact, gathered, parameter, context };

/// One argument of the function, made of what the step was given for it.
template <class T>
struct Loaded {
  using Value = Stored<T>;
  std::optional<Value> value;
  explicit Loaded(StepRun& run, Slot slot, std::size_t index) {
    if (slot == Slot::artifact) {
      run.doing("reading its argument", index);
      if constexpr (Storable<Value>) value.emplace(Codec<Value>::load(run.input(index)));
    } else if (slot == Slot::gathered) {
      run.doing("reading its argument", index);
      if constexpr (is_a<Value, std::vector>) {
        if constexpr (Storable<typename Value::value_type>) {
          value.emplace();
          for (const auto& path : run.inputs(index))
            value->push_back(Codec<typename Value::value_type>::load(path));
        }
      }
    } else if constexpr (JsonAble<Value>) {
      run.doing("reading its parameter", index);
      value.emplace(decode<Value>(*run.parameter(index, std::is_same_v<Value, std::string>)));
    }
  }
  T get() {
    if constexpr (std::is_lvalue_reference_v<T>)
      return *value;
    else
      return std::move(*value);
  }
};
template <class T>
requires is_context<T>
struct Loaded<T> {
  StepRun& run;
  explicit Loaded(StepRun& r, Slot, std::size_t) : run(r) {}
  StepContext& get() { return run; }
};

/// Reads arguments, calls, stores results.
using Entry = Function<void(StepRun&, const std::vector<Slot>&)>;

template <class F, class R, class... A>
Entry make_entry(F function) {
  return [function = std::move(function)](StepRun& run, const std::vector<Slot>& slots) mutable {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      std::tuple<Loaded<A>...> arguments{Loaded<A>(run, slots[I], I)...};
      run.doing("", 0);
      if constexpr (std::is_void_v<R>) {
        function(std::get<I>(arguments).get()...);
      } else {
        const Stored<R> results = function(std::get<I>(arguments).get()...);
        save_results(run, results);
      }
    }
    (std::index_sequence_for<A...>());
  };
}

}  // namespace detail

/// A function that is to be a step: made by step(), used once or more by Pipeline::add() or map().
template <class Function>
class FunctionStep;

template <class R, class... A>
class FunctionStep<R(A...)> {
 public:
  using Result = detail::Stored<R>;
  detail::Entry entry;
  StepOptions options;
  std::string signature;       ///< For messages.
  std::source_location where;  ///< Of the call of step().
};

/// A step that calls a function, or a lambda that captures nothing: the run calls it in another
/// process, so its key holds arguments but no captures.
/// @param options its `name` is required
template <class F>
auto step(F function, StepOptions options,
          std::source_location where = std::source_location::current()) {
  static_assert(std::is_pointer_v<F> || std::is_empty_v<F>,
                "pipeline: the lambda of a step may capture nothing, since what it captures is in "
                "no key: pass it as an argument");
  const auto make = [&]<class R, class... A>(std::type_identity<R(A...)>) {
    static_assert(((detail::is_context<A> || !std::is_lvalue_reference_v<A> ||
                    std::is_const_v<std::remove_reference_t<A>>)&&...),
                  "pipeline: a step's function takes its arguments by value or by const reference; "
                  "only StepContext& is not const");
    detail::check_results<detail::Stored<R>>();
    return FunctionStep<R(A...)>{detail::make_entry<F, R, A...>(std::move(function)),
                                 std::move(options), detail::type_name<R(A...)>(), where};
  };
  return make(detail::signature_of<F>());
}

/// A step that calls a function, given by name: its name is the step's unless the options say
/// otherwise. `pipeline.add(pl::step<train>({.retry = {.max_retries = 2}}), data, 20)`
template <auto F>
auto step(StepOptions options = {}, std::source_location where = std::source_location::current()) {
  if (options.name.empty()) {
    constexpr std::string_view text = detail::text_of_value<F>();
    constexpr auto end = text.find_first_of(";]", text.find("A = ") + 4);
    constexpr auto begin = text.find_last_of(": =&", end - 1) + 1;
    options.name = text.substr(begin, end - begin);
  }
  return step(F, std::move(options), where);
}

/// A step that executes a program: `pl::command("plot", {"python", "plot.py", "${inputs.model}",
/// "${outputs.picture}"})`. Holes are those of YAML.
struct CommandStep {
  StepOptions options;
  std::vector<std::string> words;
  bool shell = false;
  std::string script = {};  ///< The text of `script_file`, if it is one.
  std::string script_file = {};
  std::source_location where = {};
};

/// @param words executed as they stand, without a shell; its outputs are the `${outputs.NAME}` in
/// it, besides those in the options
CommandStep command(std::string name, std::vector<std::string> words, StepOptions options = {},
                    std::source_location where = std::source_location::current());
/// One line for `sh -c`.
CommandStep shell(std::string name, std::string line, StepOptions options = {},
                  std::source_location where = std::source_location::current());
/// A script whose text stands in the program, executed by `interpreter` as a file of the step's
/// code. It finds its inputs and outputs in its variables: PIPE_INPUT_MODEL, PIPE_OUTPUT_PICTURE,
/// PIPE_PARAM_TITLE. `pl::script("plot", {"python"}, R"(import os; ...)", {.outputs =
/// {"picture"}})`
CommandStep script(std::string name, std::vector<std::string> interpreter, std::string text,
                   StepOptions options = {},
                   std::source_location where = std::source_location::current());

}  // namespace pipeline

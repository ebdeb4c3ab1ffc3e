/// @file
/// Pipelines in C++: typed functions, commands and scripts joined by the artifacts that they make.
/// This header is all that a program needs.
///
/// ```cpp
/// #include <pipeline/pipeline.hpp>
/// namespace pl = pipeline;
///
/// std::vector<double> load(const std::string& file);
/// double mean(const std::vector<double>& values);
///
/// int main(int argc, char** argv) {
///   pl::Pipeline numbers{"numbers"};
///   auto values = numbers.add(pl::step<load>(), "numbers.csv");
///   numbers.add(pl::step<mean>(), values);
///   return pl::run_main(numbers, argc, argv);  // ./numbers run | plan | show | ...
/// }
/// ```
#pragma once

// Options are for naming what differs: g++'s -Wextra takes every field that `{.memory = 8_GiB}`
// leaves out for forgotten. Not undone at the end, since the places that it warns of are those of
// the program.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#endif

#include <source_location>

#include <pipeline/events.hpp>
#include <pipeline/literals.hpp>
#include <pipeline/step.hpp>

namespace pipeline {

/// What a pipeline says for all its steps; names and meanings as in YAML.
struct PipelineOptions {
  std::string description = {};
  std::map<std::string, Json> parameters = {};  ///< For commands; functions get theirs by param().
  DockerSettings docker = {};
  ResourceSettings resources = {};
  KubernetesSettings kubernetes = {};
  RetrySettings retry = {};
  std::optional<Duration> timeout = {};
  StringList code = {};
  StepEnvironment environment = {};
  std::vector<SecretSpec> secrets = {};
  std::optional<bool> cache = {};
  std::vector<std::string> tags = {};
  ExecutionMode execution_mode = ExecutionMode::continue_on_failure;
  std::string root = {};  ///< Folder that code and relative paths are taken from, and where `.pipe`
                          ///< is. Default: the working folder.
};

/// A step that has been added and has no results to take: for StepOptions::after.
struct StepHandle {
  std::string name;
  operator std::string() const { return name; }
};

/// A command that has been added; gives the handles of what it makes.
struct CommandHandle : StepHandle {
  /// The output as a file. Throws std::out_of_range if the command makes no output of this name.
  Artifact<File> operator[](const std::string& output) const { return as<File>(output); }
  /// The output as what Codec<T> reads, such as a `std::vector<double>` of a .npy file or a plain
  /// struct of a .json file.
  template <Storable T>
  Artifact<T> as(const std::string& output) const {
    check(output);
    return {{name, output}};
  }
  /// The output of all that its `matrix` makes.
  template <Storable T = File>
  Artifacts<T> all(const std::string& output) const {
    check(output);
    return {{name, output}};
  }
  std::vector<std::string> outputs;

 private:
  void check(const std::string& output) const;
};

/// What a command takes: a name, for `${inputs.NAME}`, and an artifact; or all those of a mapped
/// step, which it finds as a folder with an index.json.
struct NamedInput {
  std::string name;
  std::string reference;  ///< As in YAML: `train.model`, `train[*].model`.
  NamedInput(std::string input, std::string yaml)
      : name(std::move(input)), reference(std::move(yaml)) {}
  NamedInput(std::string input, const char* yaml) : name(std::move(input)), reference(yaml) {}
  template <class T>
  NamedInput(std::string input, const Artifact<T>& artifact)
      : name(std::move(input)), reference(artifact.step + "." + artifact.output) {}
  template <class T>
  NamedInput(std::string input, const Artifacts<T>& artifacts)
      : name(std::move(input)), reference(artifacts.step + "[*]." + artifacts.output) {}
};

namespace detail {

struct Argument {
  std::string name;
  Slot slot = Slot::parameter;
  std::vector<AnyArtifact>
      sources;  ///< Of an artifact: one. Gathered: one mapped step's, or any number of single ones.
  std::string
      selector;  ///< Of a mapped step's: `[*]` for all, `[=]` for the one of the same values.
  bool is_axis = false;  ///< Each of `axis` goes to an instance of its own.
  std::vector<Json> axis;
  Json value;                ///< Of a parameter.
  bool of_pipeline = false;  ///< param()
  Function<void(const json&)>
      check;             ///< Throws JsonError for a value that the function cannot take.
  std::string type;      ///< For messages.
  bool is_text = false;  ///< A std::string, whatever it looks like.
};

/// A step as it was added.
struct Declaration {
  StepOptions options;
  std::vector<std::string> words;  ///< Of a command.
  bool shell = false;
  std::string script, script_file;
  std::vector<Argument> arguments;
  std::vector<NamedInput> inputs;   ///< Of a command.
  std::vector<ResultInfo> results;  ///< Of a function.
  std::vector<Output> outputs;
  Entry entry;  ///< Of a function.
  std::string signature;
  std::source_location where;
  std::vector<std::string> problems;  ///< What is wrong with it by itself; told when it is run.
};

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

template <class V, class T>
concept Fits = std::is_convertible_v<V, T> &&
    !(std::is_floating_point_v<std::remove_cvref_t<V>> && std::is_integral_v<T>)&&!(
        std::is_arithmetic_v<std::remove_cvref_t<V>> && std::is_same_v<T, bool> &&
        !std::is_same_v<std::remove_cvref_t<V>,
                        bool>)&&!(std::is_same_v<std::remove_cvref_t<V>, bool> &&
                                  std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);

/// @tparam A the function's parameter @tparam G what was given for it
template <bool IsMap, int Number, class A, class G>
Argument bind(const G& given) {
  using T = Stored<A>;
  Argument argument;
  argument.type = type_name<T>();
  const auto one_value = [&](const auto& value) -> Json {
    if constexpr (!Fits<decltype(value), T>) {
      parameter_fits<Number, std::remove_cvref_t<decltype(value)>, T>();
    } else {
      parameter_can_be_written<T>();
      if constexpr (JsonAble<T>) return Json(static_cast<T>(value));
    }
    return {};
  };
  if constexpr (is_a<G, Artifacts>) {
    if constexpr (std::is_same_v<std::vector<typename G::type>, T>) {
      artifact_can_be_read<typename G::type>();
      argument.slot = Slot::gathered;
      argument.sources = {given};
      argument.selector = "[*]";
    } else if constexpr (IsMap && std::is_same_v<typename G::type, T>) {
      artifact_can_be_read<T>();
      argument.slot = Slot::artifact;
      argument.sources = {given};
      argument.selector = "[=]";
    } else {
      argument_fits<Number, G, T>();
    }
  } else if constexpr (is_a<G, Artifact>) {
    if constexpr (!std::is_same_v<typename G::type, T>) {
      argument_fits<Number, G, T>();
    } else {
      artifact_can_be_read<T>();
      argument.slot = Slot::artifact;
      argument.sources = {given};
    }
  } else if constexpr (requires {
                         typename G::value_type::type;
                         requires is_a<typename G::value_type, Artifact>;
                       }) {
    using Item = typename G::value_type::type;
    if constexpr (!std::is_same_v<std::vector<Item>, T>) {
      argument_fits<Number, G, T>();
    } else {
      artifact_can_be_read<Item>();
      argument.slot = Slot::gathered;
      argument.sources.assign(given.begin(), given.end());
    }
  } else if constexpr (std::is_base_of_v<AnyArtifact, G> || is_artifact_tuple<G>) {
    argument_fits<Number, G, T>();
  } else if constexpr (is_a<G, Each>) {
    argument.is_axis = true;
    for (const auto& value : given.values) argument.axis.push_back(one_value(value));
  } else if constexpr (is_a<G, Parameter>) {
    argument.value = one_value(given.value);
    argument.name = given.name;
    argument.of_pipeline = true;
  } else {
    argument.value = one_value(given);
  }
  if constexpr (JsonAble<T>) argument.check = [](const json& value) { decode<T>(value); };
  argument.is_text = std::is_same_v<T, std::string>;
  return argument;
}

/// Takes the next of `given` for each parameter but contexts.
template <bool IsMap, class... A, class... G>
std::vector<Argument> bind_all(const std::tuple<G...>& given) {
  constexpr int wanted = (int{!is_context<A>} + ... + 0);
  number_of_arguments<static_cast<int>(sizeof...(G)), wanted>();
  std::vector<Argument> arguments;
  if constexpr (sizeof...(G) == wanted) {
    const auto one = [&]<std::size_t I, class P>(std::type_identity<P>) {
      if constexpr (is_context<P>) {
        arguments.push_back({.slot = Slot::context});
      } else {
        constexpr std::size_t place = [] {
          std::size_t before = 0, i = 0;
          ((before += i++ < I && !is_context<A>), ...);
          return before;
        }();
        arguments.push_back(bind<IsMap, static_cast<int>(place) + 1, P>(std::get<place>(given)));
      }
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (one.template operator()<I>(std::type_identity<std::tuple_element_t<I, std::tuple<A...>>>()),
       ...);
    }
    (std::index_sequence_for<A...>());
  }
  return arguments;
}

}  // namespace detail

namespace detail {

/// The handle or handles for the results of a step. @tparam Handle Artifact, or Artifacts for a
/// mapped one
template <class R, template <class> class Handle>
auto handles_of(const std::string& step, const std::vector<Output>& outputs) {
  return [&]<class... T>(std::type_identity<std::tuple<T...>>) {
    if constexpr (sizeof...(T) == 0) {
      return StepHandle{step};
    } else if constexpr (Results<R>::is_one) {
      return Handle<R>{{step, outputs.at(0).name}};
    } else {
      std::size_t i = 0;
      return std::tuple<Handle<T>...>{Handle<T>{{step, outputs.at(i++).name}}...};
    }
  }(std::type_identity<typename Results<R>::type>());
}

}  // namespace detail

/// Steps and how they are joined. Makes nothing and reads nothing before it is run: what is wrong
/// with names and settings is told by run_main() and run(), all at once, with the line of the step
/// in question. What is wrong with types does not compile.
class Pipeline {
 public:
  explicit Pipeline(std::string name, PipelineOptions options = {});
  Pipeline(std::string name, DockerSettings docker);

  /// Adds a function. @param given for each of its arguments, StepContext left out: an Artifact,
  /// several for a std::vector, a param(), or a value
  /// @return an Artifact; a tuple of them if the function returns a pair, a tuple or an is_outputs
  /// struct; a StepHandle if it returns nothing
  template <class R, class... A, class... G>
  auto add(FunctionStep<R(A...)> step, const G&... given) {
    static_assert((!detail::is_a<G, Each> && ...),
                  "pipeline: each() makes many steps of one: give it to map()");
    const auto& added = put(declare<R>(
        std::move(step), detail::bind_all<false, A...>(std::tuple<const G&...>(given...))));
    return detail::handles_of<detail::Stored<R>, Artifact>(added.options.name, added.outputs);
  }

  /// Adds a command or a script. @param inputs what it finds at `${inputs.NAME}`
  CommandHandle add(CommandStep step, std::vector<NamedInput> inputs = {});

  /// Makes many steps of one function: an instance for each value of an each(), or for each
  /// combination of several; or, given the Artifacts of a mapped step where the function takes a
  /// single one, an instance for each of those. What else is given goes to all. YAML's `matrix`.
  /// @return Artifacts, or a tuple of them; a StepHandle if the function returns nothing
  ///
  /// ```cpp
  /// auto models = digits.map(pl::step<train>(), data, pl::each({0.1, 1.0, 10.0}));
  /// auto scores = digits.map(pl::step<score>(), models, held_out);
  /// digits.add(pl::step<best>(), models, scores);  // best(const std::vector<Model>&, const
  /// std::vector<double>&)
  /// ```
  template <class R, class... A, class... G>
  auto map(FunctionStep<R(A...)> step, const G&... given) {
    static_assert(((detail::is_a<G, Each> || detail::is_a<G, Artifacts>) || ...),
                  "pipeline: map() needs an each() or the Artifacts of another map() among its "
                  "arguments; add() takes single ones");
    const auto& added = put(declare<R>(
        std::move(step), detail::bind_all<true, A...>(std::tuple<const G&...>(given...))));
    return detail::handles_of<detail::Stored<R>, Artifacts>(added.options.name, added.outputs);
  }

  const std::string& name() const { return name_; }
  const PipelineOptions& options() const { return options_; }
  /// In the order in which they were added. For the engine.
  const std::vector<detail::Declaration>& steps() const { return steps_; }

 private:
  template <class R, class Step>
  static detail::Declaration declare(Step step, std::vector<detail::Argument> arguments) {
    detail::Declaration declaration;
    declaration.options = std::move(step.options);
    declaration.signature = std::move(step.signature);
    declaration.where = step.where;
    declaration.entry = std::move(step.entry);
    declaration.arguments = std::move(arguments);
    declaration.results = detail::results_of<detail::Stored<R>>();
    return declaration;
  }
  /// Names its arguments and outputs. The reference lasts until the next one is put.
  const detail::Declaration& put(detail::Declaration declaration);

  std::string name_;
  PipelineOptions options_;
  std::vector<detail::Declaration> steps_;
};

/// The program's `main`: `./digits run`, `plan`, `show` and the other commands of `pipe`, for this
/// pipeline instead of a file; `export` writes it as YAML. Started by a run, it enters one step
/// instead. Returns the exit code: 0 all well, 1 a step failed, 2 wrong input, 3 the machine lacks
/// something, 4 an image could not be built, 130 interrupted. Throws nothing.
int run_main(const Pipeline& pipeline, int argc, const char* const* argv);

}  // namespace pipeline

#include <pipeline/run.hpp>

/// @file
/// Pipelines in C++: typed functions, commands and scripts, connected by their artifacts. A program
/// needs this header alone; <pipeline/run.hpp> adds the engine for programs that do more than
/// run_main().
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
///   pl::Artifact<std::vector<double>> values = numbers.add(pl::step<load>(), "numbers.csv");
///   numbers.add(pl::step<mean>(), values);
///   return pl::run_main(numbers, argc, argv);  // ./numbers run | plan | show | ...
/// }
/// ```
#pragma once

#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include <pipeline/artifact.hpp>
#include <pipeline/detail/binding.hpp>
#include <pipeline/literals.hpp>
#include <pipeline/options.hpp>
#include <pipeline/step.hpp>

namespace pipeline {

/// Steps, and the artifacts that connect them. Adding a step executes and reads nothing. A mismatch
/// of types does not compile; wrong names and settings are reported by run_main() and run(), all at
/// once, each with the line of its step.
class Pipeline {
 public:
  explicit Pipeline(std::string_view name,
                    const PipelineOptions& options = detail::no_pipeline_options());
  Pipeline(const Pipeline& other);
  Pipeline(Pipeline&& other) noexcept;
  Pipeline& operator=(Pipeline other) noexcept;
  ~Pipeline();

  /// Adds a function.
  /// @param given one argument for each parameter of the function except StepContext: an Artifact,
  /// several of them for a std::vector, a param(), or a value
  /// @return an Artifact; a tuple of them if the function returns a pair, a tuple or an is_outputs
  /// struct; a StepHandle if it returns nothing
  template <class R, class... A, class... G>
  auto add(FunctionStep<R(A...)> step, const G&... given) {
    static_assert((!detail::is_a<G, Each> && ...),
                  "pipeline: each() makes many steps of one: give it to map()");
    detail::bind_all<false, R, A...>(step, given...);
    return detail::handles_of<R, Artifact>(put(std::move(step)));
  }

  /// Adds a command or a script.
  CommandHandle add(CommandStep step, const std::vector<NamedInput>& inputs = {});

  /// Adds instances of a function: one for each value of an each(), or for each combination of the
  /// values of several. Where the function takes a T, Artifacts<T> make an instance for each
  /// artifact, and an Artifact<std::vector<T>> makes one for each item that the vector has in the
  /// run. All other arguments are the same for all instances. Corresponds to YAML's `matrix`.
  /// @return Artifacts, or a tuple of them; a StepHandle if the function returns nothing
  ///
  /// ```cpp
  /// auto models = digits.map(pl::step<train>(), data, pl::each({0.1, 1.0, 10.0}));
  /// auto scores = digits.map(pl::step<score>(), models, held_out);
  /// // Model best(const std::vector<Model>& models, const std::vector<double>& scores);
  /// digits.add(pl::step<best>(), models, scores);
  /// ```
  template <class R, class... A, class... G>
  auto map(FunctionStep<R(A...)> step, const G&... given) {
    static_assert(
        ((detail::is_a<G, Each> || detail::is_a<G, Artifacts> || detail::is_vector_artifact<G>) ||
         ...),
        "pipeline: map() needs an each(), the Artifacts of another map() or the Artifact of a "
        "std::vector among its arguments; add() takes single ones");
    detail::bind_all<true, R, A...>(step, given...);
    return detail::handles_of<R, Artifacts>(put(std::move(step)));
  }

  /// Repeats the steps that `body` adds: the first round takes `first`, each further round takes
  /// the result of the round before. Corresponds to YAML's `repeat`.
  /// @param body is called once, with the artifact that a round takes. Returns the artifact that
  /// the round makes, or a tuple of that and an Artifact<bool>, whose `true` ends the repetition
  /// @return the result of the last round
  ///
  /// ```cpp
  /// // std::pair<Best, bool> choose(const Best& best, const std::vector<double>& losses);
  /// auto best = search.repeat({.max = 20}, first, [&](pl::Artifact<Best> best) {
  ///   auto losses = search.map(pl::step<evaluate>(), search.add(pl::step<propose>(), best));
  ///   return search.add(pl::step<choose>(), best, losses);
  /// });
  /// ```
  template <class T, class Body>
  Artifact<T> repeat(const RepeatOptions& options, const Artifact<T>& first, Body body,
                     std::source_location where = std::source_location::current()) {
    const Artifact<T> taken{begin_rounds(options, first, where)};
    const auto made = body(taken);
    using Made = std::remove_const_t<decltype(made)>;
    if constexpr (std::is_same_v<Made, Artifact<T>>) {
      return {end_rounds(made, {})};
    } else if constexpr (std::is_same_v<Made, std::tuple<Artifact<T>, Artifact<bool>>>) {
      return {end_rounds(std::get<0>(made), std::get<1>(made))};
    } else {
      static_assert(std::is_same_v<Made, Artifact<T>>,
                    "pipeline: the body of repeat() returns an artifact of the type that it takes, "
                    "or a tuple of one and an Artifact<bool>");
    }
  }

  const std::string& name() const;
  const PipelineOptions& options() const;
  /// The steps in the order in which they were added. For the engine: the type is complete only in
  /// its sources.
  const std::vector<detail::Declaration>& steps() const;
  /// The repetitions; Declaration::repeat is an index of this list. For the engine.
  const std::vector<detail::Repetition>& repetitions() const;

 private:
  AnyArtifact begin_rounds(const RepeatOptions& options, const AnyArtifact& first,
                           std::source_location where);
  AnyArtifact end_rounds(const AnyArtifact& next, const When& until);
  /// Names the step's arguments and outputs. The reference is valid until the next call.
  const detail::Declaration& put(detail::StepDeclaration step);

  struct Content;
  std::unique_ptr<Content> content_;  ///< Null only after a move.
};

/// The program's `main`: `./digits run`, `plan`, `show` and the other commands of `pipe`, for this
/// pipeline instead of a file; `export` writes it as YAML. In a process that a run has started for
/// a step, calls that step instead. Never throws.
/// @return the exit code: 0 success, 1 a step failed, 2 wrong input, 3 the machine lacks something,
/// 4 an image could not be built, 130 interrupted
int run_main(const Pipeline& pipeline, int argc, const char* const* argv);

}  // namespace pipeline

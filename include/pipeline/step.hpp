/// @file
/// Steps before they are added to a pipeline: functions, commands and scripts.
#pragma once

#include <initializer_list>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pipeline/context.hpp>
#include <pipeline/detail/declaration.hpp>
#include <pipeline/detail/signature.hpp>
#include <pipeline/json.hpp>
#include <pipeline/options.hpp>

namespace pipeline {

/// A function as a step. Made by step(); may be added more than once.
template <class Function>
class FunctionStep;

template <class R, class... A>
class FunctionStep<R(A...)> : public detail::StepDeclaration {
 public:
  using detail::StepDeclaration::StepDeclaration;
};

/// A step that calls a function, given by name: `pl::step<train>({.retry = {.max_retries = 2}})`.
/// The step has the function's name unless the options name it.
template <auto F>
auto step(const StepOptions& options = detail::no_options(),
          std::source_location where = std::source_location::current()) {
  return detail::make_function_step<FunctionStep>(F, detail::name_of_function<F>(), options, where);
}

/// A step that calls a function or a lambda: `pl::step([](int n) { return n + 1; }, {.name =
/// "next"})`. The lambda must not capture anything: the run calls it in another process, and
/// captures would be missing from the step's key.
/// @param options its `name` is required
template <class F>
auto step(F function, const StepOptions& options,
          std::source_location where = std::source_location::current()) {
  return detail::make_function_step<FunctionStep>(function, {}, options, where);
}

/// A command, a script or a notebook as a step, made by command(), shell(), script() or notebook();
/// may be added repeatedly.
class CommandStep : public detail::StepDeclaration {
 public:
  using detail::StepDeclaration::StepDeclaration;
};

/// A step that executes a program: `pl::command("plot", {"python", "plot.py", "${inputs.model}",
/// "${outputs.picture}"})`.
/// @param words executed without a shell. Placeholders are those of YAML; each `${outputs.NAME}`
/// declares an output, besides those in the options
CommandStep command(std::string_view name, std::vector<std::string> words,
                    const StepOptions& options = detail::no_options(),
                    std::source_location where = std::source_location::current());
/// A step that executes lines for a shell (StepOptions::shell). With the default shell, the first
/// line that fails fails the step.
CommandStep shell(std::string_view name, std::string_view line,
                  const StepOptions& options = detail::no_options(),
                  std::source_location where = std::source_location::current());
/// A step that executes a script whose text is part of the program: `pl::script("plot", {"python"},
/// R"(import os; ...)", {.outputs = {"picture"}})`. The script finds paths and values in
/// environment variables: PIPE_INPUT_MODEL, PIPE_OUTPUT_PICTURE, PIPE_PARAM_TITLE.
CommandStep script(std::string_view name, std::vector<std::string> interpreter,
                   std::string_view text, const StepOptions& options = detail::no_options(),
                   std::source_location where = std::source_location::current());

/// A step that executes a Jupyter notebook: `pl::notebook("train", "train.ipynb", {.parameters =
/// {{"rate", 0.5}}, .outputs = {"model"}})`. Parameters and the paths of inputs and outputs are
/// variables of the notebook; the executed notebook is the output `notebook`.
CommandStep notebook(std::string_view name, std::string_view file,
                     const StepOptions& options = detail::no_options(),
                     std::source_location where = std::source_location::current());

/// A parameter of the pipeline, which `--param NAME=VALUE` sets. Made by param().
template <class T>
struct Parameter {
  std::string name;
  T value;
};

/// A parameter of the pipeline as an argument: `digits.add(pl::step<train>(), data,
/// pl::param("epochs", 20))`.
/// @param value used unless `--param` sets another
template <JsonAble T>
Parameter<T> param(std::string name, T value) {
  return {std::move(name), std::move(value)};
}
inline Parameter<std::string> param(std::string name, const char* value) {
  return {std::move(name), value};
}

/// Values for map(): each value goes to a separate instance. Made by each().
template <class T>
struct Each {
  std::vector<T> values;
};

/// Values as an argument of map(): `digits.map(pl::step<train>(), data, pl::each({0.1, 1.0,
/// 10.0}))` makes three instances.
template <class T>
Each<T> each(std::vector<T> values) {
  return {std::move(values)};
}
template <class T>
Each<T> each(std::initializer_list<T> values) {
  return {values};
}

}  // namespace pipeline

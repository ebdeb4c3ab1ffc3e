/// @file
/// A step while it is declared. Templates handle only what depends on types; the rest is compiled
/// once, in the library.
#pragma once

#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace pipeline {

class Json;
class Pipeline;
struct AnyArtifact;
struct PipelineOptions;
struct StepOptions;

namespace detail {

class StepRun;
struct Declaration;
struct Repetition;

/// The source of an argument's value: an artifact, several artifacts as one vector (`gathered`), a
/// value in the step's parameters, or the StepContext.
enum class Slot { artifact, gathered, parameter, context };

/// The type of a function's parameter.
struct ArgumentType {
  std::string_view name;  ///< The compiler's name of the type.
  bool is_text = false;   ///< A std::string, which accepts any text unchanged.
};

/// A result of a function.
struct ResultInfo {
  std::string_view name;       ///< If empty: result1, result2, ...
  std::string_view extension;  ///< Extension of the file name.
};

/// Any function pointer, converted back before the call.
using AnyFunction = void (*)();
/// Reads the arguments, calls the function, and stores the results.
using EntryFunction = void (*)(AnyFunction function, StepRun& run);

struct FunctionInfo {
  AnyFunction function;
  std::string_view name;       ///< Default name of the step.
  std::string_view signature;  ///< The compiler's text, for messages.
  std::span<const ResultInfo> results;
};

/// A step as the program declares it; add() and map() record its arguments in it.
class StepDeclaration {
 public:
  explicit StepDeclaration(std::unique_ptr<Declaration> declaration);
  StepDeclaration(const FunctionInfo& function, const StepOptions& options,
                  std::source_location where);
  StepDeclaration(const StepDeclaration& other);
  StepDeclaration(StepDeclaration&& other) noexcept;
  StepDeclaration& operator=(StepDeclaration other) noexcept;
  ~StepDeclaration();

  /// Adds the function's next argument. Subsequent calls of source() and value() refer to it.
  /// @param is_axis each of its values goes to a separate instance
  void argument(Slot slot, const ArgumentType& type, bool is_axis = false);
  /// Adds an artifact that the argument is read from. @param selector for a mapped step: `[*]` for
  /// all instances, `[=]` for the one with the same values
  void source(const AnyArtifact& artifact, const char* selector = "");
  /// Lets each item of the artifact, a vector, go to a separate instance.
  void items(const AnyArtifact& artifact);
  /// Sets the argument's value; for an axis, adds one. @param pipeline_parameter the name of a
  /// param(), else empty
  void value(const Json& value, std::string_view pipeline_parameter = {});
  /// Sets the function that throws JsonError for a value that the argument cannot have.
  void check(void (*function)(const nlohmann::json& value));
  void entry(EntryFunction function);

 private:
  friend class pipeline::Pipeline;
  std::unique_ptr<Declaration> declaration_;  ///< Null only after a move.
};

const StepOptions& no_options();
const PipelineOptions& no_pipeline_options();

/// Returns the handle of a result, counted from 0.
AnyArtifact result_of(const Declaration& step, std::size_t index);
const std::string& name_of(const Declaration& step);

}  // namespace detail
}  // namespace pipeline

/// @file
/// A step of a Pipeline as it was declared.
#pragma once

#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include <pipeline/pipeline.hpp>

namespace pipeline::detail {

/// An argument of a function step.
struct Argument {
  std::string name;
  Slot slot = Slot::parameter;
  std::vector<AnyArtifact> sources;  ///< Several for a gathered argument, else one.
  std::string selector;  ///< For a mapped step's artifact: `[*]` for all instances, `[=]` for the
                         ///< one with the same values.
  bool is_axis = false;  ///< Each value of `axis` goes to a separate instance.
  std::vector<Json> axis;
  std::optional<AnyArtifact> items;  ///< Instead of `axis`: a vector that another step makes.
  Json value;                        ///< Value of a parameter.
  bool of_pipeline = false;          ///< The value is a parameter of the pipeline, by param().
  void (*check)(const nlohmann::json&) =
      nullptr;           ///< Throws JsonError for a value that the function cannot take.
  std::string type;      ///< Name of the C++ type, for messages.
  bool is_text = false;  ///< A std::string, which accepts any text unchanged.
};

/// A result of a function step.
struct DeclaredResult {
  std::string name;
  std::string extension;  ///< Extension of the file name.
};

struct Declaration {
  StepOptions options;
  std::vector<std::string> words;   ///< Words of a command.
  std::string notebook;             ///< Path of the notebook in place of a command.
  bool shell = false;               ///< The only word is a line for a shell.
  std::string script, script_file;  ///< Text and file name of a script.
  std::vector<Argument> arguments;
  std::vector<NamedInput> inputs;       ///< Inputs of a command.
  std::vector<DeclaredResult> results;  ///< Results of a function.
  std::vector<Output> outputs;
  EntryFunction entry = nullptr;   ///< Calls `function` with its arguments; null for a command.
  AnyFunction function = nullptr;  ///< The function of a function step.
  std::string signature;           ///< The function's type, in the notation of users.
  std::source_location where;
  std::optional<std::size_t> repeat;  ///< Index of the repetition in whose rounds the step runs.
  std::vector<std::string>
      problems;  ///< Errors of the step's own declaration; reported when the pipeline is run.
};

/// The repeat() in whose rounds steps run.
struct Repetition {
  RepeatOptions options;
  AnyArtifact first, next;  ///< Input of the first round, and of each further one.
  std::source_location where;
};

/// Returns a placeholder for the artifact that a round takes; no step has its name.
AnyArtifact taken_by_round(std::size_t repetition);
/// Returns the repetition that a placeholder belongs to; nothing for other artifacts.
std::optional<std::size_t> repetition_of(std::string_view reference);

/// Returns the place of a step's function in the program, as in ProgramStep::address. Empty for a
/// command, and for a step with a version.
std::string address_of(const Declaration& step);

/// Returns the compiler's name of a type in the notation of users.
std::string tidy_type(std::string_view name);

}  // namespace pipeline::detail

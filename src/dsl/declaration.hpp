/// @file
/// A step of a Pipeline as it was declared.
#pragma once

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
  std::vector<AnyArtifact> sources;  ///< Of an artifact: one. Of a gathered one: a mapped step's,
                                     ///< or any number of single ones.
  std::string selector;  ///< Of a mapped step's artifact: `[*]` for all, `[=]` for the one of the
                         ///< same values.
  bool is_axis = false;  ///< Each of `axis` goes to an instance of its own.
  std::vector<Json> axis;
  Json value;                ///< Of a parameter.
  bool of_pipeline = false;  ///< Given by param().
  void (*check)(const nlohmann::json&) =
      nullptr;           ///< Throws JsonError for a value that the function cannot take.
  std::string type;      ///< For messages.
  bool is_text = false;  ///< A std::string, whatever its text looks like.
};

/// A result of a function step.
struct Result {
  std::string name;
  std::string extension;  ///< Of the file name.
};

struct Declaration {
  StepOptions options;
  std::vector<std::string> words;  ///< Of a command.
  bool shell = false;
  std::string script, script_file;  ///< Text and file name of a script.
  std::vector<Argument> arguments;
  std::vector<NamedInput> inputs;  ///< Of a command.
  std::vector<Result> results;     ///< Of a function.
  std::vector<Output> outputs;
  Entry entry = nullptr;  ///< Of a function.
  AnyFunction function = nullptr;
  std::string signature;
  std::source_location where;
  std::vector<std::string>
      problems;  ///< What is wrong with the step by itself; reported when the pipeline is run.
};

/// The compiler's name of a type as a user would write it.
std::string tidy_type(std::string_view name);

}  // namespace pipeline::detail

/// @file
/// The parts of a command line that a shell can complete, read from the table of commands.
#pragma once

#include <string>
#include <vector>

namespace pipeline::cli {

/// The kinds of candidates for a value or an argument; `pipelines` are pipeline files.
enum class Candidates { none, words, files, pipelines, folders, runs, steps, artifacts, profiles };

/// An option or an argument of a command.
struct CompletedOption {
  std::vector<std::string> names;  ///< `-p` and `--param`; empty: an argument.
  std::string value;               ///< Name of the value or argument; empty: a flag.
  Candidates candidates = Candidates::none;
  std::vector<std::string> words;  ///< The candidates, if their kind is `words`.
  std::string help;
  bool is_repeatable = false;
  auto operator<=>(const CompletedOption&) const = default;
};

struct CompletedCommand {
  std::string name, help;
  std::vector<CompletedOption> options, arguments;
};

/// Returns the commands of `pipe` itself, in the order of the overview.
std::vector<CompletedCommand> completed_commands();

}  // namespace pipeline::cli

/// @file
/// The commands with their options and help texts. CLI11's headers take seconds to compile, so only
/// the tables and arguments.cpp include them.
#pragma once

#include <span>

#include "cli/commands.hpp"

namespace CLI {
class App;
}

namespace pipeline::cli {

struct Options;

struct CommandEntry {
  const char* name;
  const char* summary;  ///< Shown in the overview; null: the command is not shown.
  const char* more;     ///< Text below the options in the command's help, such as examples.
  void (*add_options)(CLI::App& app, Options& options);
  core::ExitCode (*run)(Context&);
  /// The programs that have the command: `pipe` itself, C++ programs with a pipeline of their own,
  /// or both.
  enum class Programs { both, pipe, cpp } programs = Programs::both;
};

std::span<const CommandEntry> pipeline_commands();  ///< Commands that read a pipeline and run it.
std::span<const CommandEntry> record_commands();    ///< Commands that show runs, or change them.
/// Commands for this machine, a cluster or an editor, and those that pipe itself calls.
std::span<const CommandEntry> machine_commands();

/// Returns all commands in the order of the overview.
std::span<const CommandEntry> command_table();

}  // namespace pipeline::cli

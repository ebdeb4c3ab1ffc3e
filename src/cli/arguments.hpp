/// @file
/// Parses a command line into a command with its options.
#pragma once

#include <string>
#include <vector>

#include "cli/options.hpp"
#include "core/error.hpp"

namespace pipeline::cli {

class Context;

/// The result of parsing a command line: a command with its options, or a text (help) to print.
struct ParsedCommand {
  core::ExitCode (*command)(Context&) = nullptr;
  Options options;
  std::string text;
};

/// Parses the command line. Throws InputError for an unknown command or option, with the likely
/// name.
/// @param arguments without the program's name
/// @param start initial options, in which C++ programs identify themselves
ParsedCommand parse_arguments(const std::vector<std::string>& arguments, const Options& start = {});

}  // namespace pipeline::cli

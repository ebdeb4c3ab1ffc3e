/// @file
/// From a command line to a command with its options.
#pragma once

#include <string>
#include <vector>

#include "cli/options.hpp"
#include "core/error.hpp"

namespace pipeline::cli {

class Context;

/// What a command line asks for: a command with its options, or a text (help) to print.
struct Invocation {
  core::ExitCode (*command)(Context&) = nullptr;
  Options options;
  std::string text;
};

/// @param arguments without the program's name. Throws InputError for what is no command or option,
/// with the likely one.
/// @param start what the options begin as: those of a C++ program say so
Invocation parse_arguments(const std::vector<std::string>& arguments, const Options& start = {});

}  // namespace pipeline::cli

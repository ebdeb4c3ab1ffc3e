/// @file
/// The program `pipe` as a function.
#pragma once

#include <string>
#include <vector>

#include "cli/options.hpp"

namespace pipeline::cli {

/// Runs all of `pipe` except its `main`: parses, runs, reports errors. Returns the exit code.
int run_command_line(const std::vector<std::string>& arguments, const Options& start = {});

}  // namespace pipeline::cli

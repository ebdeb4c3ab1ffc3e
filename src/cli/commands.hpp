/// @file
/// The commands of `pipe`. To add one: write its function in a file of its own, declare it here, and give it a row in commands.cpp.
#pragma once

#include <string>
#include <vector>

#include "cli/options.hpp"
#include "core/error.hpp"

namespace pipeline::cli {

class Context;

ExitCode run_command(Context& context);
ExitCode resume_command(Context& context);
ExitCode validate_command(Context& context);
ExitCode plan_command(Context& context);
ExitCode render_command(Context& context);
ExitCode build_command(Context& context);
ExitCode runs_command(Context& context);
ExitCode show_command(Context& context);
ExitCode logs_command(Context& context);
ExitCode artifacts_command(Context& context);
ExitCode cancel_command(Context& context);
ExitCode import_command(Context& context);
ExitCode init_command(Context& context);
ExitCode doctor_command(Context& context);
ExitCode gpus_command(Context& context);
ExitCode clean_command(Context& context);
ExitCode instances_command(Context& context);
ExitCode kubernetes_command(Context& context);
ExitCode profiles_command(Context& context);
ExitCode schema_command(Context& context);
ExitCode export_command(Context& context);
ExitCode completion_command(Context& context);
ExitCode complete_command(Context& context);
/// `pipe run --detach`
ExitCode detach_command(Context& context);
/// What the driver in the cluster is started with.
ExitCode drive_command(Context& context);

/// What a command line asks for: a command with its options, or a text (help) to print.
struct Invocation {
  ExitCode (*command)(Context&) = nullptr;
  Options options;
  std::string text;
};

/// @param arguments without the program's name. Throws InputError for what is no command or option, with the likely one.
/// @param start what the options begin as: those of a C++ program say so
Invocation parse_arguments(const std::vector<std::string>& arguments, const Options& start = {});

/// All of `pipe` but its `main`: parses, runs, reports errors. Returns the exit code.
int run_command_line(const std::vector<std::string>& arguments, const Options& start = {});

}  // namespace pipeline::cli

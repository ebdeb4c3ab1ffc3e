/// @file
/// The commands of `pipe`. To add one: write its function in a file of its own, declare it here,
/// and give it a row in commands.cpp.
#pragma once

#include <string>
#include <vector>

#include "cli/options.hpp"
#include "core/error.hpp"

namespace pipeline::cli {

class Context;

core::ExitCode run_command(Context& context);
core::ExitCode resume_command(Context& context);
core::ExitCode validate_command(Context& context);
core::ExitCode plan_command(Context& context);
core::ExitCode render_command(Context& context);
core::ExitCode build_command(Context& context);
core::ExitCode runs_command(Context& context);
core::ExitCode show_command(Context& context);
core::ExitCode logs_command(Context& context);
core::ExitCode artifacts_command(Context& context);
core::ExitCode cancel_command(Context& context);
core::ExitCode verify_command(Context& context);
core::ExitCode import_command(Context& context);
core::ExitCode init_command(Context& context);
core::ExitCode doctor_command(Context& context);
core::ExitCode gpus_command(Context& context);
core::ExitCode clean_command(Context& context);
core::ExitCode instances_command(Context& context);
core::ExitCode kubernetes_command(Context& context);
core::ExitCode profiles_command(Context& context);
core::ExitCode schema_command(Context& context);
core::ExitCode export_command(Context& context);
core::ExitCode completion_command(Context& context);
core::ExitCode complete_command(Context& context);
/// `pipe run --detach`
core::ExitCode detach_command(Context& context);
/// What the driver in the cluster is started with.
core::ExitCode drive_command(Context& context);

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

/// All of `pipe` but its `main`: parses, runs, reports errors. Returns the exit code.
int run_command_line(const std::vector<std::string>& arguments, const Options& start = {});

}  // namespace pipeline::cli

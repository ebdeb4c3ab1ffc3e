/// @file
/// The commands of `pipe`. To add one: write its function in a separate file, declare it here, and
/// add a row to one of the command_table_*.cpp.
#pragma once

#include "core/error.hpp"

namespace pipeline::cli {

class Context;

core::ExitCode run_command(Context& context);
core::ExitCode resume_command(Context& context);
core::ExitCode validate_command(Context& context);
core::ExitCode plan_command(Context& context);
core::ExitCode graph_command(Context& context);
core::ExitCode render_command(Context& context);
core::ExitCode build_command(Context& context);
core::ExitCode lock_command(Context& context);
core::ExitCode runs_command(Context& context);
core::ExitCode show_command(Context& context);
core::ExitCode metrics_command(Context& context);
core::ExitCode compare_command(Context& context);
core::ExitCode tag_command(Context& context);
core::ExitCode note_command(Context& context);
core::ExitCode advise_command(Context& context);
core::ExitCode why_command(Context& context);
core::ExitCode used_command(Context& context);
core::ExitCode export_run_command(Context& context);
core::ExitCode sbom_command(Context& context);
core::ExitCode code_command(Context& context);
core::ExitCode shell_command(Context& context);
core::ExitCode report_command(Context& context);
core::ExitCode serve_command(Context& context);
core::ExitCode logs_command(Context& context);
core::ExitCode artifacts_command(Context& context);
core::ExitCode attach_command(Context& context);
core::ExitCode answer_command(Context& context);
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
/// `__complete`, which the completion scripts of shells call.
core::ExitCode complete_command(Context& context);
/// `__drive`, the command of the driver in a cluster.
core::ExitCode drive_command(Context& context);

}  // namespace pipeline::cli

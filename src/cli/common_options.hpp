/// @file
/// Options that several commands share. Each function adds the named options or arguments to a
/// command; parsing stores their values in `options`.
#pragma once

namespace CLI {
class App;
}

namespace pipeline::cli {

struct Options;

void add_output(CLI::App& app, Options& options);  ///< --output.
void add_state(CLI::App& app, Options& options);   ///< --state and --output.
/// The pipeline file, unless a C++ program is the pipeline.
void add_file_only(CLI::App& app, Options& options);
/// The pipeline file, --param and --params.
void add_file(CLI::App& app, Options& options);
void add_profile(CLI::App& app, Options& options);                  ///< --profile.
void add_cluster(CLI::App& app, Options& options);                  ///< --context and --namespace.
void add_orchestrator(CLI::App& app, Options& options);             ///< --orchestrator.
void add_step(CLI::App& app, Options& options, const char* help);   ///< --step.
void add_until(CLI::App& app, Options& options, const char* help);  ///< --step, also as --until.
void add_force(CLI::App& app, Options& options);                    ///< --force and --from.
void add_locked(CLI::App& app, Options& options);                   ///< --locked.
void add_template_dir(CLI::App& app, Options& options);             ///< --template-dir.
void add_run(CLI::App& app, Options& options);           ///< The argument RUN (default: latest).
void add_required_run(CLI::App& app, Options& options);  ///< The argument RUN.
/// The argument STEP, a step of RUN, and --attempt.
/// @param help text for a STEP that may be left out; null: STEP is required
void add_attempt(CLI::App& app, Options& options, const char* help = nullptr);
void add_jobs(CLI::App& app, Options& options);         ///< --jobs.
void add_verbosity(CLI::App& app, Options& options);    ///< --verbose and --quiet.
void add_run_options(CLI::App& app, Options& options);  ///< All options of `pipe run`.

}  // namespace pipeline::cli

#include "cli/command_table.hpp"

#include <array>

#include <CLI/CLI.hpp>

#include "cli/common_options.hpp"
#include "cli/one_of.hpp"
#include "cli/options.hpp"

namespace pipeline::cli {
namespace {

constexpr CommandEntry run_row{
    "run", "Build what is missing and run the pipeline",
    "Examples:\n"
    "  pipe run                              pipeline.yaml of this folder, in containers\n"
    "  pipe run digits.yaml -o local         as processes, without a container engine\n"
    "  pipe run -p test_size=0.3 -s train    another parameter; only train and what it needs\n"
    "  pipe run --force train                train again, later steps if its outputs differ\n"
    "  pipe run --output json                events, one a line\n"
    "  pipe run --detach                     in the background; `pipe attach` shows it\n"
    "  pipe run -o kubernetes --detach       driven from the cluster, without this machine\n\n"
    "Steps that have not changed since they last succeeded are reused. Ctrl-C stops gracefully, "
    "a second Ctrl-C at once.\n"
    "Exit code: 0 all well, 1 a step failed, 2 wrong input, 3 the environment (no engine, no "
    "disk), 4 a build failed, 130 interrupted.",
    add_run_options, run_command};

void add_validate_options(CLI::App& app, Options& options) {
  add_file(app, options);
  add_output(app, options);
}

constexpr CommandEntry validate_row{
    "validate", "Check a pipeline file and report all of its errors",
    "Example:\n  pipe validate pipeline.yaml", add_validate_options, validate_command};

void add_plan_options(CLI::App& app, Options& options) {
  add_file(app, options);
  add_orchestrator(app, options);
  add_until(app, options, "Only this step and what it needs");
  app.add_flag("--no-cache", options.no_cache, "Plan for a run with --no-cache");
  add_locked(app, options);
  add_force(app, options);
  app.add_flag("-v,--verbose", options.verbose,
               "List the code files with the reason of each, and the parts of the cache key");
  add_template_dir(app, options);
  add_state(app, options);
}

constexpr CommandEntry plan_row{
    "plan", "Show what a run would do with each step, run it or reuse a result, and why",
    "Examples:\n"
    "  pipe plan\n"
    "  pipe plan -v -s train     with its code files, why they belong to it, and all parts of its "
    "key",
    add_plan_options, plan_command};

void add_graph_options(CLI::App& app, Options& options) {
  add_file(app, options);
  app.add_option("--format", options.graph.format, "The language: mermaid, dot or svg")
      ->check(one_of({"mermaid", "dot", "svg"}))
      ->type_name("NAME")
      ->capture_default_str();
  add_output(app, options);
}

constexpr CommandEntry graph_row{
    "graph", "Print the steps and what connects them, as a picture or for Mermaid or Graphviz",
    "Examples:\n"
    "  pipe graph --format svg > graph.svg\n"
    "  pipe graph >> README.md                        between lines of ```mermaid and ```\n"
    "  pipe graph --format dot | dot -Tpdf > graph.pdf",
    add_graph_options, graph_command};

void add_render_options(CLI::App& app, Options& options) {
  add_file(app, options);
  add_orchestrator(app, options);
  add_step(app, options, "Only this step");
  add_template_dir(app, options);
  add_output(app, options);
}

constexpr CommandEntry render_row{
    "render",
    "Print the Dockerfile of each step and the files of its build context; or the Job of each "
    "step on a cluster",
    "Examples:\n  pipe render -s train\n  pipe render -o kubernetes", add_render_options,
    render_command};

void add_build_options(CLI::App& app, Options& options) {
  add_file(app, options);
  add_orchestrator(app, options);
  add_step(app, options, "Only the environment of this step");
  add_locked(app, options);
  add_template_dir(app, options);
  add_state(app, options);
}

void add_lock_options(CLI::App& app, Options& options) {
  add_file(app, options);
  add_orchestrator(app, options);
  app.add_option_function<std::vector<std::string>>(
         "--upgrade",
         [&options](const std::vector<std::string>& names) {
           // `--upgrade` without a name arrives as an empty text.
           for (const auto& name : names)
             if (name.empty())
               options.lock.upgrade_all = true;
             else
               options.lock.upgrade.insert(lockfile::normalised_name(name));
         },
         "Take the newest versions of this package, or the newest content of this input or "
         "address, or of all; may be repeated")
      ->type_name("[NAME]")
      ->expected(0, 1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  auto* check = app.add_flag("--check", options.lock.frozen,
                             "Change nothing, and fail with exit code 2 if the file would change");
  app.add_flag("--diff", options.lock.dry_run, "Change nothing, and say what would change")
      ->excludes(check);
  add_template_dir(app, options);
  add_state(app, options);
}

constexpr CommandEntry lock_row{
    "lock",
    "Resolve the Python requirements of all steps, fetch their data, and write both into the lock "
    "file",
    "Examples:\n"
    "  pipe lock                           what the file lacks; all else stays as it is\n"
    "  pipe lock --upgrade                 the newest versions that suit the requirements\n"
    "  pipe lock --upgrade numpy           of one package\n"
    "  pipe lock --upgrade corpus          what the address of the input `corpus` gives now\n"
    "  pipe lock --upgrade numpy --diff    what that would change\n"
    "  pipe lock --check                   for CI: is the file complete?\n\n"
    "The file lies beside the pipeline file: pipeline.lock. Commit it.",
    add_lock_options, lock_command};

constexpr CommandEntry build_row{
    "build",
    "Make the environments of all steps (images, or virtual environments), and run nothing",
    "Example:\n  pipe build -o local", add_build_options, build_command};

constexpr std::array pipeline_commands_rows{run_row,    validate_row, plan_row, graph_row,
                                            render_row, build_row,    lock_row};

}  // namespace

std::span<const CommandEntry> pipeline_commands() { return pipeline_commands_rows; }

}  // namespace pipeline::cli

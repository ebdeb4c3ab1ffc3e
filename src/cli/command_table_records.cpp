#include "cli/command_table.hpp"

#include <array>

#include <CLI/CLI.hpp>

#include "cli/common_options.hpp"
#include "cli/one_of.hpp"
#include "cli/options.hpp"

namespace pipeline::cli {
namespace {

void add_runs_options(CLI::App& app, Options& options) {
  app.add_option("--pipeline", options.runs.pipeline, "Only runs of this pipeline")
      ->type_name("NAME");
  app.add_option("--tag", options.runs.tag,
                 "Only runs with this tag, the pipeline's or one that `pipe tag` added")
      ->type_name("TAG");
  app.add_option("--where", options.runs.where,
                 "Only runs that match: 'params.c > 1 and metrics.accuracy > 0.9'")
      ->type_name("EXPRESSION");
  app.add_option("--sort", options.runs.sort,
                 "Sort by this value, the largest first: metrics.accuracy, params.c, run.seconds")
      ->type_name("VALUE");
  app.add_option("--columns", options.runs.columns,
                 "Show these values: params.c,metrics.accuracy,usage.memory")
      ->type_name("VALUES")
      ->delimiter(',');
  app.add_option("-n,--limit", options.runs.limit, "At most this many; 0: all")
      ->check(CLI::Range(0u, 1'000'000u).description(""))
      ->type_name("N")
      ->capture_default_str();
  add_state(app, options);
}

constexpr CommandEntry runs_row{"runs", "List runs, the newest first",
                                "Example:\n  pipe runs --pipeline digits -n 5", add_runs_options,
                                runs_command};

void add_show_options(CLI::App& app, Options& options) {
  add_run(app, options);
  app.add_option("STEP", options.step, "Only this step, with all of its attempts")->type_name("");
  app.add_flag("--wide", options.show.wide,
               "Also where the steps' time went, what they have read and written, and their nodes");
  add_state(app, options);
  app.remove_option(app.get_option("--output"));
  app.add_option_function<std::string>(
         "--output",
         [&options](const std::string& format) {
           options.json = format == "json";
           options.show.html = format == "html";
         },
         "text, json for programs, or html for a cell of a notebook")
      ->check(one_of({"text", "json", "html"}))
      ->type_name("FORMAT");
}

constexpr CommandEntry show_row{
    "show", "Show a run: its steps, attempts, times and failures",
    "Examples:\n  pipe show\n  pipe show 20261121-0815\n"
    "  pipe show latest train    one step: each attempt, its phases and usage\n"
    "  pipe show --wide\n"
    "  pipe show latest --output html    for a cell of a notebook: a report in a frame",
    add_show_options, show_command};

void add_metrics_options(CLI::App& app, Options& options) {
  add_run(app, options);
  app.add_option("STEP", options.step, "Only the metrics of this step")->type_name("");
  app.add_flag("--csv", options.metrics.csv, "Every value, as CSV");
  add_state(app, options);
}

constexpr CommandEntry metrics_row{
    "metrics", "Show the metrics that a run's steps have reported",
    "Examples:\n  pipe metrics\n  pipe metrics latest train --csv > train.csv\n\n"
    "A step reports one by printing `@pipe {\"metric\": \"loss\", \"value\": 0.25, \"step\": 3}`, "
    "or in an output with `metrics: true`.",
    add_metrics_options, metrics_command};

void add_compare_options(CLI::App& app, Options& options) {
  app.add_option("RUN", options.compare.runs, "The runs: identifiers, unique prefixes, or 'latest'")
      ->type_name("")
      ->required();
  app.add_flag("--all", options.compare.all, "Also rows that are equal in all runs");
  add_state(app, options);
}

constexpr CommandEntry compare_row{
    "compare", "Compare runs: parameters, metrics, code, environments, time and usage",
    "Example:\n  pipe compare latest 20261121-0815", add_compare_options, compare_command};

void add_tag_options(CLI::App& app, Options& options) {
  add_required_run(app, options);
  app.add_option("TAG", options.tag.added, "Tags to add; none: list them")->type_name("");
  app.add_option("--remove", options.tag.removed, "A tag to remove")->type_name("TAG");
  add_state(app, options);
}

constexpr CommandEntry tag_row{
    "tag", "Add tags to a run, or remove them",
    "Examples:\n  pipe tag latest best\n  pipe tag latest --remove best\n  pipe runs --tag best",
    add_tag_options, tag_command};

void add_note_options(CLI::App& app, Options& options) {
  add_required_run(app, options);
  app.add_option("TEXT", options.note.text, "The note; '' removes it; none: print it")
      ->type_name("");
  add_state(app, options);
}

constexpr CommandEntry note_row{"note", "Write a note to a run, or print it",
                                "Example:\n  pipe note latest 'the first with augmented data'",
                                add_note_options, note_command};

void add_report_options(CLI::App& app, Options& options) {
  add_run(app, options);
  app.add_option("-o,--out", options.copy_to,
                 "Where to write it; `-`: standard output (default: report-RUN.html)")
      ->type_name("FILE");
  add_state(app, options);
}

constexpr CommandEntry report_row{
    "report", "Write a run as one HTML file that needs no server and makes no request",
    "Example:\n  pipe report latest -o report.html", add_report_options, report_command};

void add_serve_options(CLI::App& app, Options& options) {
  app.add_option("--port", options.serve.port, "The port; 0: any that is free")
      ->check(CLI::Range(0u, 65535u).description(""))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--host", options.serve.host,
                 "The address to listen on; addresses other than this machine's own give a "
                 "warning")
      ->type_name("ADDRESS")
      ->capture_default_str();
  app.add_option("--bucket", options.serve.remote_profile,
                 "Show the detached runs in the bucket of this profile, in place of a state folder")
      ->type_name("PROFILE");
  add_state(app, options);
}

constexpr CommandEntry serve_row{
    "serve",
    "Show runs as a live page: their states, logs, metrics and comparisons; it changes nothing but "
    "answers",
    "Examples:\n"
    "  pipe serve                                     prints the address to open; Ctrl-C ends it\n"
    "  ssh -L 7473:localhost:7473 HOST pipe serve     of another machine, through ssh\n"
    "  pipe serve --bucket lab                        the detached runs in the bucket of a "
    "profile",
    add_serve_options, serve_command};

void add_advise_options(CLI::App& app, Options& options) {
  add_file(app, options);
  add_state(app, options);
  app.add_flag("--patch", options.advise.patch_only,
               "Print only the patch of the file, for `git apply`");
}

constexpr CommandEntry advise_row{
    "advise", "Say what memory and CPUs the steps should ask for, by what they have used",
    "Examples:\n"
    "  pipe advise pipeline.yaml                       what is asked, what was used, and a patch\n"
    "  pipe advise pipeline.yaml --patch | git apply   takes the advice",
    add_advise_options, advise_command};

void add_why_options(CLI::App& app, Options& options) {
  app.add_option("WHAT", options.artifact,
                 "A file, a published name, STEP.OUTPUT of the latest run, or a digest or its "
                 "beginning")
      ->type_name("")
      ->required();
  add_state(app, options);
}

constexpr CommandEntry why_row{
    "why", "Say which run, step, code, parameters and inputs made a file, back to the sources",
    "Examples:\n  pipe why model.pkl      also a copy: its content is looked for\n  pipe why "
    "3c63aa8b1735",
    add_why_options, why_command};

constexpr CommandEntry used_row{
    "used", "Say what was made with a file or an artifact: steps, their runs, and what followed",
    "Examples:\n  pipe used data.csv         also a copy: its content is looked for\n  pipe used "
    "load.data         an output of the latest run",
    add_why_options, used_command};

void add_sbom_options(CLI::App& app, Options& options) {
  add_required_run(app, options);
  app.add_option("STEP", options.step, "A step of the run")->type_name("")->required();
  app.add_option("--format", options.document.format,
                 "cyclonedx (1.5), spdx (2.3), or provenance (in-toto, SLSA v1)")
      ->type_name("FORMAT")
      ->capture_default_str()
      ->check(one_of({"cyclonedx", "spdx", "provenance"}).description(""));
  add_state(app, options);
}

constexpr CommandEntry sbom_row{
    "sbom", "Print what the image of a step is made of: packages, base image, layers",
    "Examples:\n  pipe sbom latest train > train.cdx.json\n  pipe sbom latest train --format spdx\n"
    "  pipe sbom latest train --format provenance\n\n"
    "The engine must still have the image. Equal images give equal documents.",
    add_sbom_options, sbom_command};

void add_logs_options(CLI::App& app, Options& options) {
  add_required_run(app, options);
  add_attempt(app, options, "A step of the run (default: all, each line after its step's name)");
  app.add_flag("-f,--follow", options.logs.follow, "Continue until the step, or the run, ends");
  app.add_option("--rank", options.logs.rank,
                 "Only the lines of this process of a step with `nodes`, without their ranks")
      ->type_name("N");
  add_state(app, options);
}

constexpr CommandEntry logs_row{
    "logs", "Print what a step, or all steps, printed",
    "Examples:\n  pipe logs latest\n  pipe logs latest train\n  pipe logs "
    "latest train -f\n  pipe logs latest train "
    "--attempt 1 > train.log",
    add_logs_options, logs_command};

void add_code_options(CLI::App& app, Options& options) {
  add_required_run(app, options);
  add_attempt(app, options);
  app.add_option("-o,--copy", options.copy_to, "Copy the files into this folder, which is made")
      ->type_name("DIR");
  add_state(app, options);
}

constexpr CommandEntry code_row{
    "code", "List the code files that a step ran, or copy them out",
    "Examples:\n"
    "  pipe code latest train\n"
    "  pipe code 01k7 train -o train-as-it-was    # diff -r train-as-it-was .\n\n"
    "The code of each attempt is stored, also of a failed one, whether or not git has it. "
    "It is kept as long as the run.",
    add_code_options, code_command};

void add_shell_options(CLI::App& app, Options& options) {
  add_required_run(app, options);
  add_attempt(app, options);
  app.add_option("--rank", options.shell.rank,
                 "Rank in a step with `nodes`; the shell is beside its process while that runs")
      ->type_name("N");
  app.add_option("COMMAND", options.shell.command, "The command to execute (default: bash, or sh)")
      ->type_name("");
  add_state(app, options);
}

constexpr CommandEntry shell_row{
    "shell", "Open a shell as an attempt of a step had it: image, code, inputs, variables, GPUs",
    "Examples:\n"
    "  pipe shell latest train                    then eval \"$PIPE_COMMAND\" runs the step\n"
    "  pipe shell latest train --attempt 1\n"
    "  pipe shell latest train -- python -m pdb train.py\n"
    "  pipe shell latest train --rank 3           beside rank 3, if it still runs\n\n"
    "The step may have failed. Files in the step's outputs are removed when the shell ends. "
    "Secrets come from where a run takes them.\nExit code: the shell's.",
    add_shell_options, shell_command};

void add_artifacts_options(CLI::App& app, Options& options) {
  add_run(app, options);
  app.add_option("STEP[.OUTPUT]", options.step, "Only the outputs of this step, or one of them")
      ->type_name("");
  app.add_option("--copy", options.copy_to,
                 "Copy to this file or folder; what exists is not overwritten; `-`: one file "
                 "to standard output")
      ->type_name("DEST");
  auto* name = app.add_option("--name", options.artifacts.name,
                              "List the versions under this name; with --copy copy the "
                              "current one")
                   ->type_name("NAME");
  auto* promote =
      app.add_option("--promote", options.artifacts.promote, "Make this version current")
          ->type_name("VERSION")
          ->check(CLI::Range(1u, 999'999'999u).description(""))
          ->needs(name);
  app.add_flag("--demote", options.artifacts.demote, "Make the previous version current again")
      ->needs(name)
      ->excludes(promote);
  app.add_option("--publish", options.artifacts.publish_as, "Publish this one output under a name")
      ->type_name("NAME")
      ->excludes(name);
  add_profile(app, options);
  add_state(app, options);
}

constexpr CommandEntry artifacts_row{
    "artifacts", "List the outputs of a run's steps, or copy one out",
    "Examples:\n"
    "  pipe artifacts                                     all of the latest run\n"
    "  pipe artifacts latest train.model --copy model.pkl\n"
    "  pipe artifacts latest report --copy results/\n"
    "  pipe artifacts latest train.model --publish production\n"
    "  pipe artifacts --name production --demote\n"
    "  pipe artifacts --name production --profile team    in the team's bucket",
    add_artifacts_options, artifacts_command};

void add_attach_options(CLI::App& app, Options& options) {
  add_run(app, options);
  add_verbosity(app, options);
  add_state(app, options);
}

constexpr CommandEntry attach_row{
    "attach", "Show a detached run as `pipe run` shows its own, until it ends",
    "Examples:\n  pipe attach\n  pipe attach 01k7 --output json\n\nBegins with what has happened, "
    "and the last lines of what runs. Ctrl-C leaves the run alone, and so does the\nterminal's "
    "end. "
    "The exit code is the run's.",
    add_attach_options, attach_command};

void add_answer_options(CLI::App& app, Options& options) {
  add_required_run(app, options);
  app.add_option("STEP", options.step, "A step that waits; default: lists the run's questions")
      ->type_name("");
  app.add_option("ANSWER", options.answer.yes_or_no, "yes or no")
      ->type_name("")
      ->check(one_of({"yes", "no"}).description(""));
  app.add_option("--note", options.answer.note, "Why; recorded with the answer")->type_name("TEXT");
  add_state(app, options);
}

constexpr CommandEntry answer_row{
    "answer", "Answer a step that waits for a person (`wait:`)",
    "Examples:\n  pipe answer latest\n  pipe answer latest deploy yes --note 'looks right'\n\nWho "
    "answered, and when, is recorded. After no, the step fails.",
    add_answer_options, answer_command};

void add_cancel_options(CLI::App& app, Options& options) {
  add_required_run(app, options);
  app.add_flag("--now", options.cancel.now,
               "Kill the run's steps at once instead of asking them to end");
  app.add_flag("--force", options.cancel.force,
               "Record that the run's driver is gone, if this machine cannot check");
  add_state(app, options);
}

constexpr CommandEntry cancel_row{"cancel", "Stop a run in progress",
                                  "Examples:\n  pipe cancel latest\n  pipe cancel latest --now",
                                  add_cancel_options, cancel_command};

void add_resume_options(CLI::App& app, Options& options) {
  add_run(app, options);
  add_jobs(app, options);
  app.add_flag("--detach", options.detach, "Continue in the background, without the terminal");
  add_verbosity(app, options);
  add_state(app, options);
}

constexpr CommandEntry resume_row{
    "resume",
    "Continue a run that was interrupted or whose process was killed: its results stay, and "
    "attempts that "
    "still run on a cluster are joined",
    "Examples:\n  pipe resume\n  pipe resume 01k7 --output json\n\nThe run keeps its options, and "
    "reads "
    "the files as they are now.",
    add_resume_options, resume_command};

void add_verify_options(CLI::App& app, Options& options) {
  options.run.clear();
  app.add_option(
         "RUN", options.run,
         "A run: its identifier, a unique prefix of it, or 'latest' (default: all artifacts)")
      ->type_name("");
  add_state(app, options);
}

constexpr CommandEntry verify_row{
    "verify", "Read every artifact, or those of one run, and the database, and report damage",
    "Examples:\n  pipe verify             all artifacts and the database\n  pipe verify latest    "
    "  what one run made and reused\n\n"
    "Damaged artifacts are moved aside; the next run makes them again.\nExit code: 0 all well, 3 "
    "something is damaged or missing.",
    add_verify_options, verify_command};

void add_import_options(CLI::App& app, Options& options) {
  app.add_option("FILE", options.file, "The task definition, in JSON")->type_name("")->required();
  app.add_option("--out", options.copy_to,
                 "Where to write it; nothing that exists is overwritten (default: standard output)")
      ->type_name("FILE");
}

constexpr CommandEntry import_row{
    "import",
    "Write the pipeline file that an Amazon ECS task definition stands for",
    "Examples:\n"
    "  pipe import task-definition.json > pipeline.yaml\n"
    "  aws ecs describe-task-definition --task-definition train > task.json && pipe import "
    "task.json --out pipeline.yaml\n\n"
    "Settings without an equivalent are reported. `pipe run task-definition.json` runs one as it "
    "is.",
    add_import_options,
    import_command,
    CommandEntry::Programs::pipe};

constexpr std::array record_commands_rows{
    runs_row,   show_row,   metrics_row, compare_row,   tag_row,    note_row,
    report_row, serve_row,  advise_row,  why_row,       used_row,   sbom_row,
    logs_row,   code_row,   shell_row,   artifacts_row, attach_row, answer_row,
    cancel_row, resume_row, verify_row,  import_row};

}  // namespace

std::span<const CommandEntry> record_commands() { return record_commands_rows; }

}  // namespace pipeline::cli

#include "cli/command_table.hpp"

#include <array>

#include <CLI/CLI.hpp>

#include "cli/common_options.hpp"
#include "cli/options.hpp"

namespace pipeline::cli {
namespace {

constexpr Command run_row{
    "run", "Build what is missing and run the pipeline",
    "Examples:\n"
    "  pipe run                              pipeline.yaml of this folder, in containers\n"
    "  pipe run digits.yaml -o local         as processes, without a container engine\n"
    "  pipe run -p test_size=0.3 -s train    another parameter; only train and what it needs\n"
    "  pipe run --force train                train once more; the others if it gives something "
    "else\n"
    "  pipe run --output json                events, one a line\n"
    "  pipe run -o kubernetes --detach       driven from within the cluster: this machine may "
    "go\n\n"
    "Steps that have not changed since they last succeeded are reused. Ctrl-C stops gracefully, "
    "twice at once.\n"
    "Exit code: 0 all well, 1 a step failed, 2 wrong input, 3 the environment (no engine, no "
    "disk), 4 a build failed, 130 interrupted.",
    add_run_options, run_command};

void add_validate_options(CLI::App& app, Options& o) {
  add_file(app, o);
  add_output(app, o);
}

constexpr Command validate_row{
    "validate", "Check a pipeline file and say everything that is wrong with it",
    "Example:\n  pipe validate pipeline.yaml", add_validate_options, validate_command};

void add_plan_options(CLI::App& app, Options& o) {
  add_file(app, o);
  add_orchestrator(app, o);
  add_until(app, o, "Only this step and what it needs");
  app.add_flag("--no-cache", o.no_cache, "Plan for a run with --no-cache");
  add_locked(app, o);
  add_force(app, o);
  app.add_flag("-v,--verbose", o.verbose,
               "List the code files with the reason of each, and the parts of the cache key");
  add_template_dir(app, o);
  add_state(app, o);
}

constexpr Command plan_row{
    "plan", "Say what a run would do: run or reuse each step, of which run, and why",
    "Examples:\n"
    "  pipe plan\n"
    "  pipe plan -v -s train     with its code files, why they belong to it, and all parts of its "
    "key",
    add_plan_options, plan_command};

void add_graph_options(CLI::App& app, Options& o) {
  add_file(app, o);
  app.add_option("--format", o.format, "The language: mermaid or dot")
      ->check(CLI::IsMember({"mermaid", "dot"}))
      ->type_name("NAME")
      ->capture_default_str();
  add_output(app, o);
}

constexpr Command graph_row{
    "graph", "Print the steps and what connects them, for Mermaid or Graphviz to draw",
    "Examples:\n"
    "  pipe graph >> README.md                        between lines of ```mermaid and ```\n"
    "  pipe graph --format dot | dot -Tsvg > graph.svg",
    add_graph_options, graph_command};

void add_render_options(CLI::App& app, Options& o) {
  add_file(app, o);
  add_orchestrator(app, o);
  add_step(app, o, "Only this step");
  add_template_dir(app, o);
  add_output(app, o);
}

constexpr Command render_row{
    "render",
    "Print the Dockerfile of each step and the files of its build context; or the Job of each "
    "step on a cluster",
    "Examples:\n  pipe render -s train\n  pipe render -o kubernetes", add_render_options,
    render_command};

void add_build_options(CLI::App& app, Options& o) {
  add_file(app, o);
  add_orchestrator(app, o);
  add_step(app, o, "Only this step's");
  add_locked(app, o);
  add_template_dir(app, o);
  add_state(app, o);
}

void add_lock_options(CLI::App& app, Options& o) {
  add_file(app, o);
  add_orchestrator(app, o);
  app.add_option_function<std::vector<std::string>>(
         "--upgrade",
         [&o](const std::vector<std::string>& names) {
           for (const auto& name : names)
             if (name.empty())
               o.lock.upgrade_all = true;
             else
               o.lock.upgrade.insert(lock::normalised_name(name));
         },
         "Take the newest versions of this package, or of all; may be repeated")
      ->type_name("[PACKAGE]")
      ->expected(0, 1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  auto* check = app.add_flag("--check", o.lock.frozen,
                             "Change nothing, and fail with exit code 2 if the file would change");
  app.add_flag("--diff", o.lock.dry_run, "Change nothing, and say which packages would change")
      ->excludes(check);
  add_template_dir(app, o);
  add_state(app, o);
}

constexpr Command lock_row{
    "lock", "Resolve the Python requirements of all steps, and write them into the lock file",
    "Examples:\n"
    "  pipe lock                           what the file lacks; all else stays as it is\n"
    "  pipe lock --upgrade                 the newest versions that suit the requirements\n"
    "  pipe lock --upgrade numpy           of one package\n"
    "  pipe lock --upgrade numpy --diff    what that would change\n"
    "  pipe lock --check                   for CI: is the file complete?\n\n"
    "The file lies beside the pipeline file: pipeline.lock. Commit it.",
    add_lock_options, lock_command};

constexpr Command build_row{
    "build",
    "Make the environments of all steps (images, or virtual environments), and run nothing",
    "Example:\n  pipe build -o local", add_build_options, build_command};

void add_runs_options(CLI::App& app, Options& o) {
  app.add_option("--pipeline", o.inspect.pipeline, "Only runs of this pipeline")->type_name("NAME");
  app.add_option("--tag", o.inspect.tag, "Only runs of pipelines with this tag")->type_name("TAG");
  app.add_option("--where", o.inspect.where,
                 "Only runs for which this holds: 'params.c > 1 and metrics.accuracy > 0.9'")
      ->type_name("EXPRESSION");
  app.add_option("--sort", o.inspect.sort,
                 "By this value, the largest first: metrics.accuracy, params.c, run.seconds")
      ->type_name("VALUE");
  app.add_option("--columns", o.inspect.columns,
                 "Show these values: params.c,metrics.accuracy,usage.memory")
      ->type_name("VALUES")
      ->delimiter(',');
  app.add_option("-n,--limit", o.inspect.limit, "At most this many; 0: all")
      ->type_name("N")
      ->capture_default_str();
  add_state(app, o);
}

constexpr Command runs_row{"runs", "List runs, the newest first",
                           "Example:\n  pipe runs --pipeline digits -n 5", add_runs_options,
                           runs_command};

void add_show_options(CLI::App& app, Options& o) {
  add_run(app, o);
  add_state(app, o);
}

constexpr Command show_row{"show", "Show a run: its steps, attempts, times and failures",
                           "Examples:\n  pipe show\n  pipe show 20261121-0815", add_show_options,
                           show_command};

void add_metrics_options(CLI::App& app, Options& o) {
  add_run(app, o);
  app.add_option("STEP", o.step, "Only this step's")->type_name("");
  app.add_flag("--csv", o.inspect.csv, "Every value, as CSV");
  add_state(app, o);
}

constexpr Command metrics_row{
    "metrics", "Show the metrics that a run's steps have reported",
    "Examples:\n  pipe metrics\n  pipe metrics latest train --csv > train.csv\n\n"
    "A step reports one by printing `@pipe {\"metric\": \"loss\", \"value\": 0.25, \"step\": 3}`, "
    "or in an output with `metrics: true`.",
    add_metrics_options, metrics_command};

void add_compare_options(CLI::App& app, Options& o) {
  app.add_option("RUN", o.inspect.runs, "The runs: identifiers, unique prefixes, or 'latest'")
      ->type_name("")
      ->required();
  app.add_flag("--all", o.inspect.all, "Also what is equal in all");
  add_state(app, o);
}

constexpr Command compare_row{
    "compare", "Compare runs: parameters, metrics, code, environments, time and usage",
    "Example:\n  pipe compare latest 20261121-0815", add_compare_options, compare_command};

void add_tag_options(CLI::App& app, Options& o) {
  add_run(app, o, true);
  app.add_option("TAG", o.inspect.tags, "Tags to add; none: list them")->type_name("");
  app.add_option("--remove", o.inspect.removed, "A tag to remove")->type_name("TAG");
  add_state(app, o);
}

constexpr Command tag_row{
    "tag", "Add tags to a run, or remove some",
    "Examples:\n  pipe tag latest best\n  pipe tag latest --remove best\n  pipe runs --tag best",
    add_tag_options, tag_command};

void add_note_options(CLI::App& app, Options& o) {
  add_run(app, o, true);
  app.add_option("TEXT", o.inspect.note, "The note; '' removes it; none: print it")->type_name("");
  add_state(app, o);
}

constexpr Command note_row{"note", "Write a note to a run, or print it",
                           "Example:\n  pipe note latest 'the first with augmented data'",
                           add_note_options, note_command};

void add_report_options(CLI::App& app, Options& o) {
  add_run(app, o);
  app.add_option("-o,--out", o.inspect.copy_to,
                 "Where to write it; `-`: standard output (default: report-RUN.html)")
      ->type_name("FILE");
  add_state(app, o);
}

constexpr Command report_row{
    "report", "Write a run as one HTML file that needs no server and makes no request",
    "Example:\n  pipe report latest -o report.html", add_report_options, report_command};

void add_serve_options(CLI::App& app, Options& o) {
  app.add_option("--port", o.port, "The port; 0: any that is free")
      ->check(CLI::Range(0u, 65535u).description(""))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--host", o.host,
                 "The address to listen on; others than this machine's own are "
                 "warned of")
      ->type_name("ADDRESS")
      ->capture_default_str();
  add_state(app, o);
}

constexpr Command serve_row{
    "serve",
    "Show runs as a live page: their states, logs, metrics and comparisons; it changes nothing",
    "Examples:\n"
    "  pipe serve                                     prints the address to open; Ctrl-C ends it\n"
    "  ssh -L 7473:localhost:7473 HOST pipe serve     of another machine, through ssh",
    add_serve_options, serve_command};

void add_advise_options(CLI::App& app, Options& o) {
  add_file(app, o);
  add_state(app, o);
  app.add_flag("--patch", o.patch_only, "Print only the patch of the file, for `git apply`");
}

constexpr Command advise_row{
    "advise", "Say what memory and CPUs the steps should ask for, by what they have used",
    "Examples:\n"
    "  pipe advise pipeline.yaml                       what is asked, what was used, and a patch\n"
    "  pipe advise pipeline.yaml --patch | git apply   takes the advice",
    add_advise_options, advise_command};

void add_why_options(CLI::App& app, Options& o) {
  app.add_option("WHAT", o.subject,
                 "A file, a published name, STEP.OUTPUT of the latest run, or a digest or its "
                 "beginning")
      ->type_name("")
      ->required();
  add_state(app, o);
}

constexpr Command why_row{
    "why", "Say which run, step, code, parameters and inputs made a file, back to the sources",
    "Examples:\n  pipe why model.pkl      also a copy: its content is looked for\n  pipe why "
    "3c63aa8b1735",
    add_why_options, why_command};

constexpr Command used_row{
    "used", "Say what was made with a file or an artifact: steps, their runs, and what followed",
    "Examples:\n  pipe used data.csv         also a copy: its content is looked for\n  pipe used "
    "load.data         an output of the latest run",
    add_why_options, used_command};

void add_sbom_options(CLI::App& app, Options& o) {
  add_run(app, o, true);
  app.add_option("STEP", o.step, "A step of the run")->type_name("")->required();
  app.add_option("--format", o.inspect.format,
                 "cyclonedx (1.5), spdx (2.3), or provenance (in-toto, SLSA v1)")
      ->type_name("FORMAT")
      ->capture_default_str()
      ->check(CLI::IsMember({"cyclonedx", "spdx", "provenance"}).description(""));
  add_state(app, o);
}

constexpr Command sbom_row{
    "sbom", "Print what the image of a step is made of: packages, base image, layers",
    "Examples:\n  pipe sbom latest train > train.cdx.json\n  pipe sbom latest train --format spdx\n"
    "  pipe sbom latest train --format provenance\n\n"
    "The engine must still have the image. Equal images give equal documents.",
    add_sbom_options, sbom_command};

void add_logs_options(CLI::App& app, Options& o) {
  add_run(app, o, true);
  app.add_option("STEP", o.step,
                 "A step of the run (default: all, each line after its step's name)")
      ->type_name("");
  app.add_flag("-f,--follow", o.inspect.follow, "Go on until the step, or the run, ends");
  app.add_option("--attempt", o.inspect.attempt, "Which attempt (default: the last one)")
      ->type_name("N")
      ->check(CLI::Range(1u, 1'000'000u).description(""));
  add_state(app, o);
}

constexpr Command logs_row{"logs", "Print what a step, or all steps, printed",
                           "Examples:\n  pipe logs latest\n  pipe logs latest train\n  pipe logs "
                           "latest train -f\n  pipe logs latest train "
                           "--attempt 1 > train.log",
                           add_logs_options, logs_command};

void add_code_options(CLI::App& app, Options& o) {
  add_run(app, o, true);
  app.add_option("STEP", o.step, "A step of that run")->type_name("")->required();
  app.add_option("--attempt", o.inspect.attempt, "Which attempt (default: the last one)")
      ->type_name("N")
      ->check(CLI::Range(1u, 1'000'000u).description(""));
  app.add_option("-o,--copy", o.inspect.copy_to, "Copy the files into this folder, which is made")
      ->type_name("DIR");
  add_state(app, o);
}

constexpr Command code_row{
    "code", "List the code files that a step ran, or copy them out",
    "Examples:\n"
    "  pipe code latest train\n"
    "  pipe code 01k7 train -o train-as-it-was    # diff -r train-as-it-was .\n\n"
    "The code of each attempt is stored as it was, also of a failed one, whatever git knows of it. "
    "It is kept as long as the run.",
    add_code_options, code_command};

void add_shell_options(CLI::App& app, Options& o) {
  add_run(app, o, true);
  app.add_option("STEP", o.step, "A step of that run")->type_name("")->required();
  app.add_option("COMMAND", o.inspect.command, "What is executed (default: bash, or sh)")
      ->type_name("");
  app.add_option("--attempt", o.inspect.attempt, "Which attempt (default: the last one)")
      ->type_name("N")
      ->check(CLI::Range(1u, 1'000'000u).description(""));
  add_state(app, o);
}

constexpr Command shell_row{
    "shell", "Open a shell as an attempt of a step had it: image, code, inputs, variables, GPUs",
    "Examples:\n"
    "  pipe shell latest train                    then eval \"$PIPE_COMMAND\" runs the step\n"
    "  pipe shell latest train --attempt 1\n"
    "  pipe shell latest train -- python -m pdb train.py\n\n"
    "Also of a step that failed. What is written to the outputs is removed at the end. Secrets "
    "come "
    "from where a run takes them.\nExit code: the shell's.",
    add_shell_options, shell_command};

void add_artifacts_options(CLI::App& app, Options& o) {
  add_run(app, o);
  app.add_option("STEP[.OUTPUT]", o.step, "Only this step's, or one output of it")->type_name("");
  app.add_option("--copy", o.inspect.copy_to,
                 "Copy to this file or folder; what exists is not overwritten; `-`: one file "
                 "to standard output")
      ->type_name("DEST");
  auto* name = app.add_option("--name", o.inspect.name,
                              "Versions of what is published under this name; with --copy the "
                              "current one")
                   ->type_name("NAME");
  auto* promote = app.add_option("--promote", o.inspect.promote, "Make this version current")
                      ->type_name("VERSION")
                      ->check(CLI::Range(1u, 999'999'999u).description(""))
                      ->needs(name);
  app.add_flag("--demote", o.inspect.demote, "Make the version current that was so before")
      ->needs(name)
      ->excludes(promote);
  app.add_option("--publish", o.inspect.publish_as, "Publish this one output under a name")
      ->type_name("NAME")
      ->excludes(name);
  add_state(app, o);
}

constexpr Command artifacts_row{
    "artifacts", "List the outputs of a run's steps, or copy one out",
    "Examples:\n"
    "  pipe artifacts                                     all of the latest run\n"
    "  pipe artifacts latest train.model --copy model.pkl\n"
    "  pipe artifacts latest report --copy results/\n"
    "  pipe artifacts latest train.model --publish production\n"
    "  pipe artifacts --name production --demote",
    add_artifacts_options, artifacts_command};

void add_cancel_options(CLI::App& app, Options& o) {
  add_run(app, o, true);
  app.add_flag("--now", o.inspect.now, "Kill its steps at once instead of asking them to end");
  app.add_flag("--force", o.inspect.force,
               "Record that its driver is gone, where that is not known here");
  add_state(app, o);
}

constexpr Command cancel_row{"cancel", "Stop a run in progress",
                             "Examples:\n  pipe cancel latest\n  pipe cancel latest --now",
                             add_cancel_options, cancel_command};

void add_resume_options(CLI::App& app, Options& o) {
  add_run(app, o);
  add_jobs(app, o);
  add_state(app, o);
}

constexpr Command resume_row{
    "resume",
    "Go on with a run whose process was killed: what it has done stays, what still runs on a "
    "cluster is joined",
    "Examples:\n  pipe resume\n  pipe resume 01k7 --output json\n\nIt runs as it was begun, with "
    "the files as they are now.",
    add_resume_options, resume_command};

void add_verify_options(CLI::App& app, Options& o) {
  o.inspect.run.clear();
  app.add_option(
         "RUN", o.inspect.run,
         "A run: its identifier, a unique prefix of it, or 'latest' (default: all artifacts)")
      ->type_name("");
  add_state(app, o);
}

constexpr Command verify_row{
    "verify", "Read every artifact, or those of one run, and the database, and say what is damaged",
    "Examples:\n  pipe verify             all artifacts and the database\n  pipe verify latest    "
    "  what one run made and reused\n\n"
    "What is damaged is moved aside; the next run makes it again.\nExit code: 0 all well, 3 "
    "something is damaged or missing.",
    add_verify_options, verify_command};

void add_import_options(CLI::App& app, Options& o) {
  app.add_option("FILE", o.file, "The task definition, in JSON")->type_name("")->required();
  app.add_option("--out", o.inspect.copy_to,
                 "Where to write it; nothing that exists is overwritten (default: standard output)")
      ->type_name("FILE");
}

constexpr Command import_row{
    "import", "Write the pipeline file that an Amazon ECS task definition stands for",
    "Examples:\n"
    "  pipe import task-definition.json > pipeline.yaml\n"
    "  aws ecs describe-task-definition --task-definition train > task.json && pipe import "
    "task.json --out pipeline.yaml\n\n"
    "What is not honoured is named. `pipe run task-definition.json` runs one as it is.",
    add_import_options, import_command};

void add_init_options(CLI::App& app, Options& o) {
  app.add_option("DIR", o.folder, "Where to; made if it is not there")
      ->type_name("")
      ->capture_default_str();
  add_output(app, o);
}

constexpr Command init_row{
    "init",
    "Write a small pipeline to start from",
    "Example:\n  pipe init my-pipeline && pipe run my-pipeline/pipeline.yaml\n\nNothing that "
    "exists is overwritten.",
    add_init_options,
    init_command,
    Command::For::files};

void add_doctor_options(CLI::App& app, Options& o) { add_state(app, o); }

constexpr Command doctor_row{
    "doctor", "Check this machine: engine, BuildKit, disk, GPU toolkit, credentials, Python, state",
    "Exit code 3 if something that is needed fails.", add_doctor_options, doctor_command};

void add_gpus_options(CLI::App& app, Options& o) { add_output(app, o); }

constexpr Command gpus_row{
    "gpus", "List this machine's GPUs, what occupies them, which steps hold them and which wait",
    "Examples:\n  pipe gpus\n  pipe gpus --output json\n\n"
    "Steps of all users' runs count. PIPE_GPU_LOCKS names another folder for the reservations, "
    "PIPE_NVML another libnvidia-ml.",
    add_gpus_options, gpus_command};

void add_clean_options(CLI::App& app, Options& o) {
  app.add_flag("--containers", o.clean.containers, "Containers of runs that have died");
  app.add_flag("--images", o.clean.images, "Images that pipe has built");
  app.add_flag("--environments", o.clean.environments,
               "Virtual environments of local steps, of all your pipelines, that are not in use");
  app.add_flag(
      "--runs", o.clean.runs,
      "Runs with their logs, results kept for reuse, and artifacts that nothing else uses");
  app.add_option("--keep", o.clean.keep, "With --runs: keep the newest N")
      ->type_name("N")
      ->capture_default_str();
  app.add_option(
         "--keep-storage", o.clean.keep_storage,
         "Keep the newest runs whose artifacts are of this size together, such as 20GB; with "
         "--images those images that were used last")
      ->type_name("SIZE");
  app.add_flag("--all", o.clean.all, "All of these");
  app.add_flag("-n,--dry-run", o.clean.dry_run, "Remove nothing, only say what would be");
  add_state(app, o);
}

constexpr Command clean_row{
    "clean", "Remove containers, images and old runs that pipe has left",
    "Examples:\n"
    "  pipe clean --dry-run --all      say what would go\n"
    "  pipe clean --runs --keep 5      all but the five newest runs, and the artifacts that only "
    "the others use\n"
    "  pipe clean --keep-storage 20GB  the oldest runs, until the artifacts of the others fit\n"
    "  pipe clean --images             images that pipe has built, and the cache of its resolver\n"
    "  pipe clean --images --keep-storage 20GB   those that were not used for longest, until the "
    "rest fits\n\n"
    "A run in progress keeps everything that it uses.",
    add_clean_options, clean_command};

void add_instances_options(CLI::App& app, Options& o) {
  app.add_option("--gpus", o.instances.gpus, "At least so many GPUs (default: 1)")
      ->check(CLI::Range(1u, 1000u))
      ->type_name("N");
  app.add_option("--class", o.instances.gpu_class, "Model of the GPUs, such as A100")
      ->type_name("NAME");
  app.add_option("--gpu-memory", o.instances.gpu_memory, "Memory of each GPU, such as 24GB")
      ->type_name("SIZE");
  app.add_option("--compute-capability", o.instances.compute_capability,
                 "At least this compute capability, such as 8.0")
      ->type_name("N.N");
  app.add_option("--memory", o.instances.memory, "Memory of the machine, such as 100GiB")
      ->type_name("SIZE");
  app.add_option("--cpus", o.instances.cpus, "At least so many vCPUs")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  app.add_option("--arch", o.instances.architecture, "Processor")
      ->check(CLI::IsMember({"x86_64", "arm64"}))
      ->type_name("ARCH");
  add_output(app, o);
}

constexpr Command instances_row{
    "instances", "List Amazon EC2's instance types with GPUs that fit, the smallest first",
    "Examples:\n"
    "  pipe instances --gpus 4 --memory 100GiB\n"
    "  pipe instances --class A100 --gpu-memory 80GiB --output json",
    add_instances_options, instances_command};

void add_kubernetes_options(CLI::App& app, Options& o) {
  app.add_option("rbac", o.action, "What to print")
      ->check(CLI::IsMember({"rbac"}))
      ->type_name("")
      ->required();
  app.add_option("--namespace", o.name_space, "The Role's namespace (default: default)")
      ->type_name("NAME");
  app.add_option("--subject", o.subject,
                 "Whom it is bound to: User:NAME, Group:NAME or ServiceAccount:NAME")
      ->type_name("KIND:NAME");
}

constexpr Command kubernetes_row{
    "kubernetes",
    "Print the Role that running steps on a cluster takes, with its binding; for `kubectl apply "
    "-f -`",
    "Examples:\n"
    "  pipe kubernetes rbac --namespace ml --subject User:ann | kubectl apply -f -\n"
    "  pipe kubernetes rbac --subject ServiceAccount:runner",
    add_kubernetes_options, kubernetes_command};

void add_profiles_options(CLI::App& app, Options& o) {
  add_file(app, o);
  add_output(app, o);
}

constexpr Command profiles_row{
    "profiles", "List the profiles: named places to run in, with what goes with them",
    "Examples:\n  pipe profiles\n  pipe run --profile lab\n\nThey are in profiles.yaml beside the "
    "pipeline, and in ~/.config/pipe/profiles.yaml "
    "($PIPE_PROFILES).",
    add_profiles_options, profiles_command};

void add_schema_options(CLI::App& app, Options& o) { add_output(app, o); }

constexpr Command schema_row{
    "schema",
    "Print the JSON Schema of pipeline files, for editors",
    "Example:\n  pipe schema > pipeline.schema.json\n\nIn the pipeline file, for editors with the "
    "YAML language server:\n  # yaml-language-server: "
    "$schema=pipeline.schema.json",
    add_schema_options,
    schema_command,
    Command::For::files};

void add_export_options(CLI::App& app, Options& o) { add_output(app, o); }

constexpr Command export_row{
    "export",
    "Write the pipeline as YAML",
    "Example:\n  pipe export > pipeline.yaml\n\nA step that is a function keeps this program as "
    "its command.",
    add_export_options,
    export_command,
    Command::For::programs};

void add_export_run_options(CLI::App& app, Options& o) {
  add_run(app, o, true);
  app.add_option("ARTIFACT", o.step, "With slsa: an output of the run, STEP.OUTPUT")->type_name("");
  app.add_option("--format", o.inspect.format,
                 "ro-crate (a folder), openlineage (events), or slsa (provenance of an artifact)")
      ->type_name("FORMAT")
      ->required()
      ->check(CLI::IsMember({"ro-crate", "openlineage", "slsa"}).description(""));
  app.add_option("-o,--out", o.inspect.copy_to,
                 "Where to write it: a folder for ro-crate (default: crate-RUN), else a file or "
                 "standard output; openlineage also takes the address of a server")
      ->type_name("PATH");
  app.add_option("--license", o.inspect.license, "With ro-crate: of its content, as SPDX names it")
      ->type_name("SPDX");
  add_state(app, o);
}

constexpr Command export_run_row{
    "export",
    "Write a run for other programs: RO-Crate, OpenLineage, in-toto provenance",
    "Examples:\n"
    "  pipe export latest --format ro-crate -o crate --license Apache-2.0\n"
    "  pipe export latest --format openlineage -o https://lineage.example/api/v1/lineage\n"
    "  pipe export latest train.model --format slsa -o model.intoto.json",
    add_export_run_options,
    export_run_command,
    Command::For::files};

void add_completion_options(CLI::App& app, Options& o) {
  app.add_option("SHELL", o.shell, "bash, zsh or fish")
      ->type_name("")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}).description(""));
}

constexpr Command completion_row{
    "completion",
    "Print a script that completes commands and options in a shell",
    "Examples:\n"
    "  pipe completion bash > ~/.local/share/bash-completion/completions/pipe\n"
    "  pipe completion zsh  > ~/.zfunc/_pipe\n"
    "  pipe completion fish > ~/.config/fish/completions/pipe.fish",
    add_completion_options,
    completion_command,
    Command::For::files};

void add_complete_options(CLI::App& app, Options& o) {
  app.add_option("WHAT", o.words)->required();
  app.add_option("RUN", o.inspect.run);
  app.add_option("--state", o.state);
}

constexpr Command complete_row{"__complete", nullptr, "", add_complete_options, complete_command};

void add_drive_options(CLI::App& app, Options& o) {
  app.add_option("RUN", o.inspect.run)->required();
  app.add_option("--state", o.state)->required();
}

constexpr Command drive_row{"__drive", nullptr, "", add_drive_options, drive_command};

constexpr std::array commands{
    run_row,        validate_row,   plan_row,       graph_row,    render_row,    build_row,
    lock_row,       runs_row,       show_row,       metrics_row,  compare_row,   tag_row,
    note_row,       report_row,     serve_row,      advise_row,   why_row,       used_row,
    sbom_row,       logs_row,       code_row,       shell_row,    artifacts_row, cancel_row,
    resume_row,     verify_row,     import_row,     init_row,     doctor_row,    gpus_row,
    clean_row,      instances_row,  kubernetes_row, profiles_row, schema_row,    export_row,
    export_run_row, completion_row, complete_row,   drive_row};

}  // namespace

std::span<const Command> command_table() { return commands; }

}  // namespace pipeline::cli

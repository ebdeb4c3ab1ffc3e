#include "cli/command_table.hpp"

#include <array>

#include <CLI/CLI.hpp>

#include "cli/common_options.hpp"
#include "cli/one_of.hpp"
#include "cli/options.hpp"

namespace pipeline::cli {
namespace {

void add_init_options(CLI::App& app, Options& options) {
  app.add_option("DIR", options.init.folder,
                 "The folder for the files; created if it does not exist")
      ->type_name("")
      ->capture_default_str();
  add_output(app, options);
}

constexpr CommandEntry init_row{
    "init",
    "Write a small pipeline to start from",
    "Example:\n  pipe init my-pipeline && pipe run my-pipeline/pipeline.yaml\n\nNothing that "
    "exists is overwritten.",
    add_init_options,
    init_command,
    CommandEntry::Programs::pipe};

void add_doctor_options(CLI::App& app, Options& options) {
  add_state(app, options);
  add_profile(app, options);
}

constexpr CommandEntry doctor_row{
    "doctor", "Check this machine: engine, BuildKit, disk, GPU toolkit, credentials, Python, state",
    "Exit code 3 if something that is needed fails.", add_doctor_options, doctor_command};

void add_gpus_options(CLI::App& app, Options& options) { add_output(app, options); }

constexpr CommandEntry gpus_row{
    "gpus", "List this machine's GPUs, what occupies them, which steps hold them and which wait",
    "Examples:\n  pipe gpus\n  pipe gpus --output json\n\n"
    "Steps of all users' runs count. PIPE_GPU_LOCKS names another folder for the reservations, "
    "PIPE_NVML another libnvidia-ml.",
    add_gpus_options, gpus_command};

void add_clean_options(CLI::App& app, Options& options) {
  app.add_flag("--containers", options.clean.containers, "Containers of runs that have died");
  app.add_flag("--images", options.clean.images, "Images that pipe has built or loaded");
  app.add_flag("--environments", options.clean.environments,
               "Virtual environments of local steps, of all your pipelines, that are not in use");
  app.add_flag(
      "--runs", options.clean.runs,
      "Runs with their logs, results kept for reuse, and artifacts that nothing else uses");
  app.add_option("--keep", options.clean.keep,
                 "With --runs: keep the newest N, and those with the tag `keep`")
      ->check(CLI::Range(0u, 1'000'000u).description(""))
      ->type_name("N");
  app.add_option(
         "--keep-storage", options.clean.keep_storage,
         "Keep the newest runs whose artifacts are of this size together, such as 20GB; with "
         "--images those images that were used last")
      ->type_name("SIZE");
  app.add_flag("--all", options.clean.all, "All of these");
  app.add_flag("--remote", options.clean.remote,
               "The profile's remote store: what no result, name or run on any machine needs; with "
               "--keep-storage the oldest results above a size");
  app.add_option("--older-than", options.clean.older_than,
                 "With --remote: results and checkpoints of this age, such as 30d")
      ->type_name("TIME");
  app.add_flag("-n,--dry-run", options.clean.dry_run,
               "Remove nothing, only list what would be removed");
  add_profile(app, options);
  add_state(app, options);
}

constexpr CommandEntry clean_row{
    "clean", "Remove containers, images and old runs that pipe has left",
    "Examples:\n"
    "  pipe clean --dry-run --all      list what would be removed\n"
    "  pipe clean --runs --keep 5      all but the five newest runs, and the artifacts that only "
    "the others use\n"
    "  pipe clean --keep-storage 20GB  the oldest runs, until the artifacts of the others fit\n"
    "  pipe clean --images             images that pipe has made, and the cache of its resolver\n"
    "  pipe clean --images --keep-storage 20GB   those that were not used for longest, until the "
    "rest fits\n"
    "  pipe clean --profile team --remote --older-than 30d   old results in a bucket\n\n"
    "A run in progress keeps everything that it uses.",
    add_clean_options, clean_command};

void add_instances_options(CLI::App& app, Options& options) {
  app.add_option("--gpus", options.instances.gpus, "Minimum number of GPUs (default: 1)")
      ->check(CLI::Range(1u, 1000u))
      ->type_name("N");
  app.add_option("--class", options.instances.gpu_class, "Model of the GPUs, such as A100")
      ->type_name("NAME");
  app.add_option("--gpu-memory", options.instances.gpu_memory, "Memory of each GPU, such as 24GB")
      ->type_name("SIZE");
  app.add_option("--compute-capability", options.instances.compute_capability,
                 "At least this compute capability, such as 8.0")
      ->type_name("N.N");
  app.add_option("--memory", options.instances.memory, "Memory of the machine, such as 100GiB")
      ->type_name("SIZE");
  app.add_option("--cpus", options.instances.cpus, "Minimum number of vCPUs")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  app.add_option("--arch", options.instances.architecture, "Processor")
      ->check(one_of({"x86_64", "arm64"}))
      ->type_name("ARCH");
  add_output(app, options);
}

constexpr CommandEntry instances_row{
    "instances", "List Amazon EC2's instance types with GPUs that fit, the smallest first",
    "Examples:\n"
    "  pipe instances --gpus 4 --memory 100GiB\n"
    "  pipe instances --class A100 --gpu-memory 80GiB --output json",
    add_instances_options, instances_command};

void add_kubernetes_options(CLI::App& app, Options& options) {
  app.add_option("rbac", options.kubernetes.document, "What to print")
      ->check(one_of({"rbac"}))
      ->type_name("")
      ->required();
  app.add_option("--namespace", options.connection["namespace"],
                 "The Role's namespace (default: default)")
      ->type_name("NAME");
  app.add_option("--subject", options.kubernetes.subject,
                 "Subject of the binding: User:NAME, Group:NAME or ServiceAccount:NAME")
      ->type_name("KIND:NAME");
}

constexpr CommandEntry kubernetes_row{
    "kubernetes",
    "Print the Role that is needed to run steps on a cluster, with its binding; for `kubectl apply "
    "-f -`",
    "Examples:\n"
    "  pipe kubernetes rbac --namespace ml --subject User:ann | kubectl apply -f -\n"
    "  pipe kubernetes rbac --subject ServiceAccount:runner",
    add_kubernetes_options, kubernetes_command};

void add_profiles_options(CLI::App& app, Options& options) {
  add_file_only(app, options);
  add_output(app, options);
}

constexpr CommandEntry profiles_row{
    "profiles", "List the profiles: named places to run in, with what goes with them",
    "Examples:\n  pipe profiles\n  pipe run --profile lab\n\nProfiles are in profiles.yaml beside "
    "the pipeline, and in ~/.config/pipe/profiles.yaml ($PIPE_PROFILES).",
    add_profiles_options, profiles_command};

void add_schema_options(CLI::App& app, Options& options) { add_output(app, options); }

constexpr CommandEntry schema_row{
    "schema",
    "Print the JSON Schema of pipeline files, for editors",
    "Example:\n  pipe schema > pipeline.schema.json\n\nIn the pipeline file, for editors with the "
    "YAML language server:\n  # yaml-language-server: "
    "$schema=pipeline.schema.json",
    add_schema_options,
    schema_command,
    CommandEntry::Programs::pipe};

void add_export_options(CLI::App& app, Options& options) { add_output(app, options); }

constexpr CommandEntry export_row{
    "export",
    "Write the pipeline as YAML",
    "Example:\n  pipe export > pipeline.yaml\n\nA step that is a function keeps this program as "
    "its command.",
    add_export_options,
    export_command,
    CommandEntry::Programs::cpp};

void add_export_run_options(CLI::App& app, Options& options) {
  add_required_run(app, options);
  app.add_option("ARTIFACT", options.step, "With slsa: an output of the run, STEP.OUTPUT")
      ->type_name("");
  app.add_option("--format", options.document.format,
                 "ro-crate (a folder), openlineage (events), or slsa (provenance of an artifact)")
      ->type_name("FORMAT")
      ->required()
      ->check(one_of({"ro-crate", "openlineage", "slsa"}).description(""));
  app.add_option("-o,--out", options.copy_to,
                 "Where to write it: a folder for ro-crate (default: crate-RUN), else a file or "
                 "standard output; openlineage also takes the address of a server")
      ->type_name("PATH");
  app.add_option("--license", options.document.license,
                 "With ro-crate: SPDX identifier of the crate's license")
      ->type_name("SPDX");
  add_state(app, options);
}

constexpr CommandEntry export_run_row{
    "export",
    "Write a run for other programs: RO-Crate, OpenLineage, in-toto provenance",
    "Examples:\n"
    "  pipe export latest --format ro-crate -o crate --license Apache-2.0\n"
    "  pipe export latest --format openlineage -o https://lineage.example/api/v1/lineage\n"
    "  pipe export latest train.model --format slsa -o model.intoto.json",
    add_export_run_options,
    export_run_command,
    CommandEntry::Programs::pipe};

void add_completion_options(CLI::App& app, Options& options) {
  app.add_option("SHELL", options.completion.shell, "bash, zsh or fish")
      ->type_name("")
      ->required()
      ->check(one_of({"bash", "zsh", "fish"}).description(""));
}

constexpr CommandEntry completion_row{
    "completion",
    "Print a script that completes commands and options in a shell",
    "Examples:\n"
    "  pipe completion bash > ~/.local/share/bash-completion/completions/pipe\n"
    "  pipe completion zsh  > ~/.zfunc/_pipe\n"
    "  pipe completion fish > ~/.config/fish/completions/pipe.fish",
    add_completion_options,
    completion_command,
    CommandEntry::Programs::pipe};

void add_complete_options(CLI::App& app, Options& options) {
  app.add_option("WHAT", options.completion.kind)->required();
  app.add_option("RUN", options.run);
  app.add_option("--state", options.state);
}

constexpr CommandEntry complete_row{"__complete", nullptr, "", add_complete_options,
                                    complete_command};

void add_drive_options(CLI::App& app, Options& options) {
  app.add_option("RUN", options.run)->required();
  app.add_option("--state", options.state)->required();
}

constexpr CommandEntry drive_row{"__drive", nullptr, "", add_drive_options, drive_command};

constexpr std::array machine_commands_rows{
    init_row,       doctor_row,   gpus_row,   clean_row,  instances_row,
    kubernetes_row, profiles_row, schema_row, export_row, export_run_row,
    completion_row, complete_row, drive_row};

}  // namespace

std::span<const CommandEntry> machine_commands() { return machine_commands_rows; }

}  // namespace pipeline::cli

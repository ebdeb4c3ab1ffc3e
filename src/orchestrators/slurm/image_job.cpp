#include "orchestrators/slurm/image_job.hpp"

#include "core/file.hpp"
#include "core/identifier.hpp"
#include "docker/program_image.hpp"
#include "orchestrators/containers/container_layout.hpp"
#include "orchestrators/nodes.hpp"
#include "orchestrators/slurm/gang_job.hpp"
#include "orchestrators/slurm/program_files.hpp"
#include "settings/accelerator.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

namespace fs = std::filesystem;

/// Paths of pipe in the container, besides those of container_layout().
constexpr const char *job_folder = "/pipe/job", *events_folder = "/pipe/events",
                     *agent_file = "/pipe/agent";
/// Variables that the runtimes add, and that are unset before the step's command starts.
constexpr const char* runtime_variables =
    "CH_RUNNING HOSTNAME PROMPT_COMMAND PS1 USER_PATH container"
    " APPTAINER_APPNAME APPTAINER_BIND APPTAINER_COMMAND APPTAINER_CONTAINER"
    " APPTAINER_ENVIRONMENT APPTAINER_NAME SINGULARITY_APPNAME SINGULARITY_BIND"
    " SINGULARITY_COMMAND SINGULARITY_CONTAINER SINGULARITY_ENVIRONMENT SINGULARITY_NAME";

std::string quoted_words(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += " " + core::shell_quote(word);
  return text;
}

/// Returns the script that the container's `sh` executes. The script records the agent's process
/// number, so that a stop can signal the agent: a runtime that got the signal would end the
/// container at once.
std::string start_script(const AttemptSpec& attempt, const JobPaths& paths, const Layout& layout) {
  const std::string job = job_folder;
  auto text = std::string("unset ") + runtime_variables + "\n. " + job +
              "/variables\n"
              // Apptainer's folder with the libraries of `--nv`.
              "if [ -d /.singularity.d/libs ]; then\n"
              "  export LD_LIBRARY_PATH=\"${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}"
              "/.singularity.d/libs\"\n"
              "fi\n"
              "cd " +
              layout.code + " || exit 1\nunset OLDPWD\n";
  if (attempt.shell) return text + "exec" + quoted_words(attempt.shell->words) + "\n";
  const auto ended = events_folder + ("/" + paths.ended().filename().string());
  auto command = command_of(attempt, layout);
  if (attempt.process) {
    const auto words = agent_words(attempt, agent_file);
    command.insert(command.begin(), words.begin(), words.end());
  }
  // The number 1 belongs to a process namespace of the container, and names another process on the
  // node; in_podman() finds the agent's number there.
  return text + "[ $$ = 1 ] || echo $$ >" + job + "/process\nexec " + agent_file + " --status " +
         core::shell_quote(ended) + quoted_words(stall_options(attempt)) + " " + job + "/stop" +
         quoted_words(command) + "\n";
}

/// Returns the command that starts the step's program in the container.
std::vector<std::string> words_of_program(const AttemptSpec& attempt, const ImageFile& image) {
  constexpr const char* searched = "LD_LIBRARY_PATH";
  std::vector<std::string> variables;
  for (const auto* given : {&image.variables, &attempt.step.settings->docker.runtime_environment})
    if (const auto found = given->find(searched); found != given->end())
      variables.push_back(std::string(searched) + "=" + found->second);
  return docker::program_words(*attempt.step.program->program, variables);
}

/// Makes the folder that is mounted at /pipe, with a mount point for each bind below /pipe, because
/// images have no such mount points.
void make_mount_points(const fs::path& folder, const std::vector<Bind>& binds) {
  for (const auto& bind : binds) {
    const auto point = folder / bind.target.substr(containers::container_folder.size() + 1);
    if (fs::is_directory(bind.source)) {
      core::make_folders(point);
      continue;
    }
    core::make_folders(point.parent_path());
    core::write_file_atomically(point, "");
  }
}

}  // namespace

StringMap image_variables(const AttemptSpec& attempt, const ImageFile& image) {
  auto variables = variables_of(attempt, containers::container_layout());
  // The node's own disk; the scratch folder is on the shared file system.
  if (!attempt.step.settings->docker.environment.contains("TMPDIR"))
    variables.try_emplace("TMPDIR", "/tmp");
  containers::add_defaults(variables, attempt, 0);
  for (const auto& [name, value] : image.variables) variables.try_emplace(name, value);
  add_gang_variables(attempt, variables);
  if (!settings::gpu_request(attempt.step.settings->resources).wanted()) {
    variables.try_emplace("CUDA_VISIBLE_DEVICES", "");
    variables.try_emplace("NVIDIA_VISIBLE_DEVICES", "void");
  }
  return variables;
}

ContainerStart write_image_job(const AttemptSpec& attempt, const ImageFile& image,
                               const ImageRuntime& runtime, const JobPaths& paths,
                               const fs::path& code) {
  auto layout = containers::container_layout();
  if (attempt.step.program) layout.program = words_of_program(attempt, image);
  const auto absolute = [](const fs::path& path) { return fs::absolute(path).string(); };
  const auto folder = paths.folder / "pipe";
  constexpr bool is_read_only = true;
  ContainerStart start;
  start.runtime = runtime.program;
  start.image = image.path.string();
  start.has_gpus = settings::gpu_request(attempt.step.settings->resources).wanted();
  start.binds = {{absolute(code), layout.code, is_read_only},
                 {absolute(attempt.outputs), layout.outputs},
                 {absolute(attempt.scratch), layout.scratch},
                 {paths.folder.string(), job_folder},
                 {runtime.agent.string(), agent_file, is_read_only}};
  if (!attempt.shell) start.binds.push_back({paths.events.string(), events_folder});
  if (attempt.step.program)
    start.binds.push_back(
        {absolute(program_folder(paths.events.parent_path(), *attempt.step.program->program)),
         program_target, is_read_only});
  if (!attempt.checkpoint.empty())
    start.binds.push_back({absolute(attempt.checkpoint), layout.checkpoint});
  for (const auto& input : attempt.inputs)
    start.binds.push_back({absolute(input.path), path_of(input, layout), is_read_only});
  make_mount_points(folder, start.binds);
  core::make_folders(folder / "inputs");
  start.binds.insert(start.binds.begin(),
                     {folder.string(), containers::container_folder, is_read_only});
  start.command = {"/bin/sh", std::string(job_folder) + "/start"};
  core::write_file_atomically(paths.variables(), variables_text(image_variables(attempt, image)));
  core::write_file_atomically(paths.folder / "start", start_script(attempt, paths, layout));
  return start;
}

}  // namespace pipeline::orchestrators::slurm

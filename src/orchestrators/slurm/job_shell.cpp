#include "core/file.hpp"
#include "orchestrators/processes/terminal_process.hpp"
#include "orchestrators/processes/virtual_environment.hpp"
#include "orchestrators/slurm/job_files.hpp"

namespace pipeline::orchestrators::slurm {

namespace fs = std::filesystem;

async::Task<AttemptResult> run_shell(JobContext& context, const Attempt& attempt) {
  const auto folder = fs::absolute(attempt.scratch) / "slurm";
  const JobPaths paths{.folder = folder / "shell", .events = folder, .name = "shell"};
  make_private_folder(paths.folder);
  const processes::Workspace workspace(attempt, context.short_folders);
  std::string script;
  if (context.runs_in_image(attempt.step)) {
    script = container_shell_script(co_await write_container(context, attempt, paths, workspace));
  } else {
    write_variables(context, attempt, workspace, paths.variables());
    script = shell_script(paths, workspace.layout().code, attempt.shell->words);
  }
  core::write_file_atomically(paths.script(), script);
  const auto command =
      shell_command(attempt, context.agent, paths, context.connection, context.gres_types);
  AttemptResult result;
  result.exit_code = run_on_streams(context.client.login(), command, attempt.shell->has_terminal);
  co_return result;
}

int run_on_streams(const LoginNode& login, const std::vector<std::string>& command,
                   bool has_terminal) {
  processes::ProcessOptions process;
  process.arguments = login.words(command, has_terminal);
  process.environment = processes::caller_variables();
  // With the variables of an allocation, srun would start a job step there, and not a job.
  std::erase_if(process.environment, [](const auto& variable) {
    return variable.first.starts_with("SLURM_") && variable.first != "SLURM_CONF";
  });
  process.program = processes::find_program(process.arguments.front(), process.environment["PATH"]);
  process.folder = "/";
  return processes::run_on_terminal(process);
}

}  // namespace pipeline::orchestrators::slurm

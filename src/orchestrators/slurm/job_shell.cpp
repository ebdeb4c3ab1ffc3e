#include "core/file.hpp"
#include "orchestrators/processes/terminal_process.hpp"
#include "orchestrators/processes/virtual_environment.hpp"
#include "orchestrators/slurm/job_files.hpp"

namespace pipeline::orchestrators::slurm {

namespace fs = std::filesystem;

async::Task<AttemptResult> run_shell(JobPlace& place, const Attempt& attempt) {
  const auto folder = fs::absolute(attempt.scratch) / "slurm";
  make_private_folder(folder);
  const processes::Workspace workspace(attempt, place.short_folders);
  std::vector<std::string> command;
  if (place.runs_in_image(attempt.step)) {
    const JobPaths paths{folder, folder, "shell"};
    const auto start = co_await write_container(place, attempt, paths, workspace);
    command = container_shell_command(attempt, start, place.connection, place.gres_types);
  } else {
    write_variables(place, attempt, workspace, folder / "variables");
    command = shell_command(attempt, folder / "variables", workspace.layout().code,
                            place.connection, place.gres_types);
  }
  AttemptResult result;
  result.exit_code = run_on_streams(place.client.login(), command, attempt.shell->has_terminal);
  co_return result;
}

int run_on_streams(const LoginNode& login, const std::vector<std::string>& command,
                   bool has_terminal) {
  processes::ProcessOptions process;
  process.arguments = login.words(command, has_terminal);
  process.environment = processes::caller_variables();
  // In an allocation, srun would use a part of that.
  std::erase_if(process.environment, [](const auto& variable) {
    return variable.first.starts_with("SLURM_") && variable.first != "SLURM_CONF";
  });
  process.program = processes::find_program(process.arguments.front(), process.environment["PATH"]);
  process.folder = "/";
  return processes::run_on_terminal(process);
}

}  // namespace pipeline::orchestrators::slurm

#include "orchestrators/slurm/beside_job.hpp"

#include "core/file.hpp"
#include "core/text.hpp"
#include "orchestrators/slurm/job_run.hpp"
#include "orchestrators/slurm/submitter.hpp"

namespace pipeline::orchestrators::slurm {

namespace fs = std::filesystem;

async::Task<std::vector<std::string>> command_beside(Client& client, fs::path agent,
                                                     fs::path folder, RunningProcess process,
                                                     ShellRequest shell) {
  const auto job_paths = paths_of(folder, job_name(process.run_id, process.step, process.number));
  const auto job = recorded_job(job_paths);
  const auto paths = process.rank ? node_paths(job_paths, process.node) : job_paths;
  std::vector<std::string> command;
  const bool is_running = fs::exists(paths.begun()) && !fs::exists(paths.ended());
  if (job.id.empty() || !is_running) co_return command;
  if (fs::exists(paths.container_process())) co_return command;
  // srun does not accept `4711_3`; squeue's %A is the number that such a task has as a job.
  std::vector<std::string> question{"squeue", "--noheader", "--states=RUNNING", "--jobs=" + job.id,
                                    "--format=%A"};
  const auto answer = co_await client.output_of(std::move(question));
  const auto id = last_line(answer);
  if (id.empty()) co_return command;
  command = {"srun", "--overlap", "--jobid=" + id, "--export=TERM", "--nodes=1", "--ntasks=1"};
  if (shell.has_terminal) command.emplace_back("--pty");
  if (process.rank) {
    const auto begun = core::words_of(core::read_if_file(paths.begun()));
    if (begun.size() > 1) command.push_back("--nodelist=" + begun[1]);
  }
  // The agent finds the step's process by these variables (agent/join.hpp).
  StringMap marks{{"PIPE_RUN_ID", process.run_id},
                  {"PIPE_STEP_NAME", process.step},
                  {"PIPE_ATTEMPT", std::to_string(process.number)}};
  if (process.rank) marks["RANK"] = std::to_string(*process.rank);
  command.push_back(agent.string());
  command.emplace_back("join");
  for (const auto& [name, value] : marks) command.push_back(name + "=" + value);
  command.emplace_back("--");
  command.insert(command.end(), shell.words.begin(), shell.words.end());
  co_return command;
}

}  // namespace pipeline::orchestrators::slurm

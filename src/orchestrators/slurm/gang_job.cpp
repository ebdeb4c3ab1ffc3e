#include "orchestrators/slurm/gang_job.hpp"

#include <cmath>

#include "core/file.hpp"
#include "core/identifier.hpp"
#include "orchestrators/slurm/job_run.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

/// No name of a job has it.
constexpr const char* node_separator = "+";

}  // namespace

void GangJob::fail() {
  has_error = true;
  for (auto* gate : {&is_known, &are_ready, &is_submitted}) gate->open();
}

JobPaths node_paths(const JobPaths& job, unsigned node) {
  return paths_of(job.events.parent_path(), job.name + node_separator + std::to_string(node));
}

std::string gang_script(const JobPaths& job, const std::filesystem::path& agent,
                        const AttemptSpec& attempt) {
  const auto nodes = std::to_string(attempt.process->nodes);
  const auto& cpus = attempt.step.settings->resources.cpu_count;
  // srun of 22.05 and newer does not look at sbatch's number.
  const auto own_cpus =
      cpus ? " --cpus-per-task=" + std::to_string(static_cast<unsigned>(std::ceil(*cpus))) : "";
  const auto quoted = [](const std::filesystem::path& path) {
    return core::shell_quote(path.string());
  };
  return
      // The agents of other nodes find this one at the first address that answers.
      "PIPE_NODE_MEETING=$(hostname -I 2>/dev/null | tr -s ' ' ,)\n"
      "export PIPE_NODE_MEETING PATH=\"$PATH:$PIPE_PATH\"\n"
      "rm -rf \"$PIPE_TEMPORARY\"\n"
      "unset PIPE_TEMPORARY PIPE_PATH\n"
      // The tasks get it as well, and end by it.
      "trap : TERM\n"
      "srun --nodes=" +
      nodes + " --ntasks=" + nodes + " --ntasks-per-node=1" + own_cpus +
      " --kill-on-bad-exit=0 --wait=0 --mpi=none --input=none --export=ALL /bin/sh -c " +
      core::shell_quote(
          "PIPE_NODE_MEETING=$SLURM_LAUNCH_NODE_IPADDR,$PIPE_NODE_MEETING; "
          "exec \"$0\" job \"$1\" \"$2\" \"$3$SLURM_NODEID\"") +
      " " + quoted(agent) + " " + quoted(job.folder.parent_path()) + " " + quoted(job.events) +
      " " + core::shell_quote(job.name + node_separator) +
      " &\n"
      "srun=$!\n"
      "while kill -0 \"$srun\" 2>/dev/null; do wait \"$srun\"; done\n";
}

void remove_gang_files(const JobPaths& job) {
  const auto is_of_node = [&](const std::filesystem::path& path) {
    return path.filename().string().starts_with(job.name + node_separator);
  };
  for (const auto& folder : {job.folder.parent_path(), job.events})
    for (const auto& path : core::entries_of(folder))
      if (is_of_node(path)) core::remove_tree(path);
  remove_files(job);
}

}  // namespace pipeline::orchestrators::slurm

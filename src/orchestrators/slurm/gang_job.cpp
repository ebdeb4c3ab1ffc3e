#include "orchestrators/slurm/gang_job.hpp"

#include "core/file.hpp"
#include "core/identifier.hpp"
#include "core/random_name.hpp"
#include "orchestrators/slurm/job_run.hpp"
#include "settings/accelerator.hpp"

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
  // srun of 22.05 and newer does not look at sbatch's number.
  const auto cpus = cpus_option(attempt.step.settings->resources);
  const auto in_quotes = [](const std::filesystem::path& path) {
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
      nodes + " --ntasks=" + nodes + " --ntasks-per-node=1" + (cpus ? " " + *cpus : "") +
      " --kill-on-bad-exit=0 --wait=0 --mpi=none --input=none --export=ALL /bin/sh -c " +
      core::shell_quote(
          "PIPE_NODE_MEETING=$SLURM_LAUNCH_NODE_IPADDR,$PIPE_NODE_MEETING; "
          "exec \"$0\" job \"$1\" \"$2\" \"$3$SLURM_NODEID\"") +
      " " + in_quotes(agent) + " " + in_quotes(job.folder.parent_path()) + " " +
      in_quotes(job.events) + " " + core::shell_quote(job.name + node_separator) +
      " &\n"
      "srun=$!\n"
      "while kill -0 \"$srun\" 2>/dev/null; do wait \"$srun\"; done\n";
}

std::string name_of(const AttemptSpec& attempt) {
  return job_name(attempt.run_id, attempt.step.name, attempt.number);
}

void connect_gang(const AttemptSpec& attempt, NodeAddresses& addresses) {
  for (std::size_t node = 0; node < addresses.nodes.size(); ++node)
    addresses.nodes[node] = "{node" + std::to_string(node) + "}";
  addresses.has_agents = true;
  addresses.secret = core::random_name() + core::random_name();
  addresses.gpus = settings::gpu_request(attempt.step.settings->resources).count;
}

void check_gang(const StepSpec& step, bool is_in_image, bool is_within,
                std::vector<core::Diagnostic>& found) {
  const auto refuse = [&](const char* why, const char* suggestion) {
    found.push_back({.code = "slurm-resources",
                     .message = "'" + step.name + "' cannot run: " + why,
                     .span = {.line = step.line},
                     .suggestion = suggestion});
  };
  if (is_in_image)
    refuse("a step with `nodes` runs in no image on Slurm",
           "without `container_runtime` in the profile it runs in a virtual environment");
  if (is_within)
    refuse("a step with `nodes` is a job of its own, no step of an allocation",
           "leave `within` out of the profile");
  if (step.nodes.visible == VisibleGpus::own)
    refuse("it has `visible: own`, and on Slurm all processes of a node see all of its GPUs",
           "let each process take the GPU of its LOCAL_RANK");
}

std::set<std::string> gangs_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto* part : {"jobs", "events"})
    for (const auto& path : core::entries_of(folder / part)) {
      const auto file = path.filename().string();
      if (const auto end = file.find(node_separator); end != file.npos)
        names.insert(file.substr(0, end));
    }
  return names;
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

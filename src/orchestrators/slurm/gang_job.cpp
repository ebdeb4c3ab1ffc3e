#include "orchestrators/slurm/gang_job.hpp"

#include "core/file.hpp"
#include "core/identifier.hpp"
#include "core/joined.hpp"
#include "core/random_name.hpp"
#include "orchestrators/nodes.hpp"
#include "orchestrators/slurm/allocation.hpp"
#include "orchestrators/slurm/job_run.hpp"
#include "settings/accelerator.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

/// Separates a job's name from a node's number. No job's name contains this character, see
/// job_name().
constexpr const char* node_separator = "+";

}  // namespace

void GangJob::fail() {
  has_error = true;
  for (auto* gate : {&is_known, &are_ready, &is_submitted}) gate->open();
}

JobPaths node_paths(const JobPaths& job, unsigned node) {
  return paths_of(job.events.parent_path(), job.name + node_separator + std::to_string(node));
}

std::vector<std::string> gang_step(const JobContext& context, const AttemptSpec& attempt) {
  if (!context.connection.contains("within")) return {};
  auto words =
      srun_words(job_options(attempt, context.owner, context.connection, context.gres_types));
  words.push_back("--job-name=" + job_name_of(attempt));
  return words;
}

std::string gang_script(const JobPaths& job, const std::filesystem::path& agent,
                        const AttemptSpec& attempt, const std::vector<std::string>& step) {
  const auto nodes = std::to_string(attempt.process->nodes);
  // srun of Slurm 22.05 and newer ignores the number of CPUs that sbatch got.
  const auto cpus = cpus_option(attempt.step.settings->resources);
  const auto in_quotes = [](const std::filesystem::path& path) {
    return core::shell_quote(path.string());
  };
  const bool is_in_allocation = !step.empty();
  const auto words = is_in_allocation
                         ? core::joined(step, " ", core::shell_quote)
                         : "srun --nodes=" + nodes + " --ntasks=" + nodes + " --ntasks-per-node=1" +
                               (cpus ? " " + *cpus : "") + " --mpi=none --input=none --export=ALL";
  // The agents of other nodes connect to that of node 0 at the first address that answers. A batch
  // script runs on node 0. In an allocation, node 0 writes its addresses to a file, for which the
  // other nodes wait up to a minute.
  const std::string find_addresses =
      is_in_allocation
          ? "if [ \"$SLURM_NODEID\" = 0 ]; then\n"
            "  echo \"$(hostname -I 2>/dev/null | tr -s ' ' ,)127.0.0.1\" >\"$4.new\"\n"
            "  mv \"$4.new\" \"$4\"\n"
            "fi\n"
            "looks=0\n"
            "until [ -s \"$4\" ] || [ $looks = 600 ]; do looks=$((looks + 1)); sleep 0.1; done\n"
            "PIPE_NODE_MEETING=$(cat \"$4\"); export PIPE_NODE_MEETING\n"
          : "PIPE_NODE_MEETING=$SLURM_LAUNCH_NODE_IPADDR,$PIPE_NODE_MEETING; ";
  const auto tasks =
      words + " --kill-on-bad-exit=0 --wait=0 /bin/sh -c " +
      core::shell_quote(find_addresses + "exec \"$0\" job \"$1\" \"$2\" \"$3$SLURM_NODEID\"") +
      " " + in_quotes(agent) + " " + in_quotes(job.folder.parent_path()) + " " +
      in_quotes(job.events) + " " + core::shell_quote(job.name + node_separator);
  const std::string beginning =
      "PIPE_NODE_MEETING=$(hostname -I 2>/dev/null | tr -s ' ' ,)\n"
      "export PIPE_NODE_MEETING PATH=\"$PATH:$PIPE_PATH\"\n"
      "rm -rf \"$PIPE_TEMPORARY\"\n"
      "unset PIPE_TEMPORARY PIPE_PATH\n";
  // The number of srun's process stands for the job (AllocationClient).
  if (is_in_allocation)
    return beginning + "export PIPE_SLURM_ID=$$\nexec " + tasks + " " +
           in_quotes(job.folder / "addresses") + "\n";
  return beginning +
         // The tasks get the signal as well, and end by themselves.
         "trap : TERM\n" + tasks +
         " &\n"
         "srun=$!\n"
         "while kill -0 \"$srun\" 2>/dev/null; do wait \"$srun\"; done\n";
}

std::string job_name_of(const AttemptSpec& attempt) {
  return job_name(attempt.run_id, attempt.step.name, attempt.number);
}

void connect_gang(const AttemptSpec& attempt, NodeAddresses& addresses) {
  for (std::size_t node = 0; node < addresses.nodes.size(); ++node)
    addresses.nodes[node] = "{node" + std::to_string(node) + "}";
  addresses.has_agents = true;
  addresses.secret = core::random_name() + core::random_name();
  addresses.gpus = settings::gpu_request(attempt.step.settings->resources).count;
}

void add_gang_variables(const AttemptSpec& attempt, StringMap& variables) {
  if (!attempt.process || !attempt.process->addresses->has_agents) return;
  variables[agent_secret_name] = attempt.process->addresses->secret;
  const auto gpus = variables.find("CUDA_VISIBLE_DEVICES");
  if (gpus != variables.end() && gpus->second == gpus_mark) variables.erase(gpus);
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

#include "orchestrators/slurm/job_script.hpp"

#include <algorithm>
#include <cmath>

#include "core/digest.hpp"
#include "core/identifier.hpp"
#include "core/text.hpp"
#include "settings/accelerator.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

constexpr Bytes mebibyte = Bytes{1} << 20;
/// Slurm's time limit is longer than the step's timeout by this time, so that the timeout, which
/// stops the step gracefully, comes first.
constexpr std::chrono::minutes time_to_begin_and_end{2};

/// Names rm by its path, because PATH is the step's when it runs.
constexpr const char* removal = "/bin/rm -rf \"$temporary\"\n";

std::string quoted(const std::filesystem::path& path) { return core::shell_quote(path.string()); }

std::string words_text(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += " " + core::shell_quote(word);
  return text;
}

/// Returns the commands that execute a `case` with these branches for the name of each exported
/// variable. The commands are one line, because ssh passes them to the user's shell on a login
/// node, and csh does not accept a line end in quotes.
std::string for_each_variable(const std::string& branches) {
  return "for name in $(env | sed -n 's/^\\([A-Za-z_][A-Za-z_0-9]*\\)=.*/\\1/p'); do case $name "
         "in " +
         branches + " esac; done; ";
}

/// The first lines of a script that the agent starts (agent/job.hpp). The variable is not exported.
constexpr const char* script_beginning =
    "temporary=$PIPE_TEMPORARY\n"
    "unset PIPE_TEMPORARY PIPE_PATH\n";

/// Returns the commands that set the step's variables, working folder and TMPDIR in the shell.
std::string preparation(const std::filesystem::path& variables, const std::string& folder) {
  return "cd " + core::shell_quote(folder) +
         " || exit 1\n"
         "unset OLDPWD\n"
         ". " +
         quoted(variables) +
         "\n"
         "export TMPDIR=\"$temporary\"\n";
}

}  // namespace

std::string job_name(const std::string& run, const std::string& step, unsigned number) {
  constexpr std::size_t max_length = 100, digest_length = 8;
  std::string name;
  for (const char c : step) name += core::is_alnum(c) || c == '_' || c == '.' ? c : '-';
  if (name != step || name.size() > max_length)
    name = name.substr(0, max_length) + "-" + core::sha256(step).hex().substr(0, digest_length);
  return "pipe-" + run + "-" + name + "-" + std::to_string(number);
}

std::string job_comment(const std::string& owner, const std::string& run) {
  return "pipe:" + owner + ":" + run;
}

std::optional<std::string> run_of_comment(std::string_view comment, std::string_view owner) {
  const auto beginning = job_comment(std::string(owner), "");
  if (!comment.starts_with(beginning)) return std::nullopt;
  return std::string(comment.substr(beginning.size()));
}

std::optional<std::string> gres_type_of(const std::string& model,
                                        const std::vector<std::string>& types) {
  const auto has_words = [&](const std::string& type) {
    const auto words = core::words_of(core::lower(model));
    return std::ranges::all_of(words, [&](const std::string& word) {
      return core::lower(type).find(word) != std::string::npos;
    });
  };
  const auto exact = std::ranges::find_if(
      types, [&](const std::string& type) { return core::lower(type) == core::lower(model); });
  if (exact != types.end()) return *exact;
  const auto found = std::ranges::find_if(types, has_words);
  return found == types.end() ? std::nullopt : std::optional(*found);
}

std::vector<std::string> chosen_options(const SlurmSettings& step, StringMap connection) {
  const std::pair<const char*, const std::optional<std::string>&> own[]{
      {"partition", step.partition},    {"account", step.account}, {"qos", step.qos},
      {"constraint", step.constraint},  {"exclude", step.exclude}, {"nice", step.nice},
      {"reservation", step.reservation}};
  for (const auto& [name, value] : own)
    if (value) connection[name] = *value;
  for (const auto* own_field : {"host", "container_runtime", "within"})
    connection.erase(own_field);  // These fields are not options of sbatch.
  std::vector<std::string> options;
  for (const auto& [name, value] : connection) options.push_back("--" + name + "=" + value);
  for (const auto& option : step.extra_args.items()) options.push_back(option);
  return options;
}

std::optional<std::chrono::minutes> time_limit(const StepSpec& step) {
  const auto in_minutes = [](Duration time) {
    return std::chrono::ceil<std::chrono::minutes>(std::chrono::milliseconds(time.count()));
  };
  if (const auto own = step.settings->slurm.time) return in_minutes(*own);
  if (step.timeout) return in_minutes(*step.timeout) + time_to_begin_and_end;
  return std::nullopt;
}

std::optional<std::string> cpus_option(const ResourceSettings& resources) {
  if (!resources.cpu_count) return std::nullopt;
  return "--cpus-per-task=" +
         std::to_string(static_cast<unsigned>(std::ceil(*resources.cpu_count)));
}

std::vector<std::string> resource_options(const AttemptSpec& attempt, const StringMap& connection,
                                          const std::vector<std::string>& gres_types) {
  const auto& own = attempt.step.settings->slurm;
  auto options = chosen_options(own, connection);
  const auto& resources = attempt.step.settings->resources;
  if (auto cpus = cpus_option(resources)) options.push_back(std::move(*cpus));
  if (resources.memory)
    options.push_back("--mem=" + std::to_string((*resources.memory + mebibyte - 1) / mebibyte) +
                      "M");
  const auto gpus = settings::gpu_request(resources);
  if (gpus.wanted()) {
    const auto type =
        gpus.model ? gres_type_of(*gpus.model, gres_types).value_or(*gpus.model) : std::string();
    options.push_back("--gres=gpu:" + (type.empty() ? "" : type + ":") +
                      std::to_string(gpus.count));
  }
  const bool has_own_limit = own.time || !attempt.shell;  // A shell has no timeout.
  const auto limit = has_own_limit ? time_limit(attempt.step) : std::nullopt;
  if (limit) options.push_back("--time=" + std::to_string(limit->count()));
  if (!attempt.avoided_nodes.empty() && !own.exclude && !connection.contains("exclude")) {
    std::string nodes;
    for (const auto& node : attempt.avoided_nodes) nodes += (nodes.empty() ? "" : ",") + node;
    options.push_back("--exclude=" + nodes);
  }
  return options;
}

std::vector<std::string> job_options(const AttemptSpec& attempt, const std::string& owner,
                                     const StringMap& connection,
                                     const std::vector<std::string>& gres_types) {
  std::vector<std::string> options{"--comment=" + job_comment(owner, attempt.run_id),
                                   // A retry of the step is another attempt, with new folders.
                                   "--no-requeue",
                                   // sbatch_command() leaves few variables. With NIL or NONE, each
                                   // node would run a login shell of the user for each job.
                                   "--export=ALL"};
  const auto nodes = std::to_string(attempt.process ? attempt.process->nodes : 1);
  options.insert(options.end(), {"--nodes=" + nodes, "--ntasks=" + nodes});
  if (attempt.process) options.emplace_back("--ntasks-per-node=1");
  for (auto& option : resource_options(attempt, connection, gres_types))
    options.push_back(std::move(option));
  return options;
}

std::string variables_text(const StringMap& variables) {
  std::string text;
  for (const auto& [name, value] : variables) {
    if (!core::is_variable_name(name)) continue;
    text += "export " + name + "=" + core::shell_quote(value) + "\n";
  }
  return text;
}

std::vector<std::string> sbatch_command(const std::vector<std::string>& options) {
  auto command = std::vector<std::string>{
      "/bin/sh", "-c",
      // The job must not inherit variables of an allocation that `pipe` is in: srun refuses
      // SLURM_MEM_PER_CPU beside SLURM_MEM_PER_NODE.
      for_each_variable("SLURM_CONF* | SLURM_CLUSTERS | SLURM_JWT | SLURM_TIME_FORMAT | SBATCH_* | "
                        "SPANK_* | PATH | HOME | USER | LOGNAME | LANG | LC_* | TZ | KRB5CCNAME | "
                        "LD_LIBRARY_PATH) ;; *) unset \"$name\" ;;") +
          "exec sbatch \"$@\"",
      "sbatch"};
  command.insert(command.end(), options.begin(), options.end());
  return command;
}

std::vector<std::string> queue_command(const std::vector<std::string>& words) {
  auto command = std::vector<std::string>{
      "/bin/sh", "-c",
      for_each_variable("SQUEUE_* | SCANCEL_*) unset \"$name\" ;;") + "exec \"$0\" \"$@\""};
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

std::vector<std::string> stall_options(const AttemptSpec& attempt) {
  if (!attempt.step.stalled_after) return {};
  std::vector<std::string> options{"--stalled-after",
                                   std::to_string(attempt.step.stalled_after->count())};
  if (attempt.process) options.emplace_back("--progress");
  return options;
}

std::string job_script(const JobPaths& paths, const std::filesystem::path& agent,
                       const std::vector<std::string>& agent_options, const std::string& folder,
                       const std::vector<std::string>& command) {
  return std::string(script_beginning) + preparation(paths.variables(), folder) + quoted(agent) +
         " --status " + quoted(paths.ended()) + words_text(agent_options) + " " +
         quoted(paths.folder / "stop") + words_text(command) + " >" + quoted(paths.log()) +
         " </dev/null &\n"
         "agent=$!\n"
         "trap 'kill -TERM \"$agent\"' TERM\n"
         "while kill -0 \"$agent\" 2>/dev/null; do wait \"$agent\"; done\n" +
         removal;
}

std::string batch_script(const std::filesystem::path& agent, const JobPaths& paths,
                         const std::filesystem::path& list) {
  return "#!/bin/sh\nexec " + quoted(agent) + " job " + quoted(paths.folder.parent_path()) + " " +
         quoted(paths.events) +
         (list.empty() ? " " + core::shell_quote(paths.name) : " --list " + quoted(list)) + "\n";
}

std::string container_script(const JobPaths& paths, const ContainerStart& start) {
  const auto ended = quoted(paths.ended()), process = quoted(paths.container_process());
  return std::string(script_beginning) +
         // Records that the step has not been started, for any reason.
         "without_container() {\n"
         "  [ -e " +
         ended + " ] || { echo '{\"no_container\":true}' >" + ended + ".none && mv " + ended +
         ".none " + ended + "; }\n  " + removal + "  exit 1\n}\n" + container_commands(start) +
         "\"$@\" >" + quoted(paths.log()) +
         " </dev/null &\n"
         "container=$!\n"
         "trap 'kill -TERM \"$(cat " +
         process +
         " 2>/dev/null || echo \"$container\")\"' TERM\n"
         "while kill -0 \"$container\" 2>/dev/null; do wait \"$container\"; done\n"
         // A driver that has read the record of the end removes the job's folder and then the
         // record: if both are missing, the step may have been started.
         "[ -e " +
         ended + " ] || [ ! -d " + quoted(paths.folder) + " ] || without_container\n" + removal;
}

std::string container_shell_script(const ContainerStart& start) {
  return std::string(script_beginning) + "without_container() {\n  " + removal + "  exit 1\n}\n" +
         container_commands(start) + "\"$@\"\ncode=$?\n" + removal + "exit $code\n";
}

std::string shell_script(const JobPaths& paths, const std::string& folder,
                         const std::vector<std::string>& words) {
  return std::string(script_beginning) + preparation(paths.variables(), folder) +
         words_text(words).substr(1) + "\ncode=$?\n" + removal + "exit $code\n";
}

std::vector<std::string> shell_command(const AttemptSpec& attempt,
                                       const std::filesystem::path& agent, const JobPaths& paths,
                                       const StringMap& connection,
                                       const std::vector<std::string>& gres_types) {
  const auto& shell = *attempt.shell;
  std::vector<std::string> command{"srun", "--job-name=pipe-shell-" + shell.id, "--export=NONE",
                                   "--nodes=1", "--ntasks=1"};
  if (shell.has_terminal) command.emplace_back("--pty");
  for (auto& option : resource_options(attempt, connection, gres_types))
    command.push_back(std::move(option));
  command.insert(command.end(), {agent.string(), "job", paths.folder.parent_path().string(),
                                 paths.events.string(), paths.name});
  return command;
}

}  // namespace pipeline::orchestrators::slurm

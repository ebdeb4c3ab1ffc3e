#include "orchestrators/slurm/allocation.hpp"

#include <signal.h>

#include <algorithm>

#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "core/joined.hpp"
#include "core/text.hpp"
#include "core/user_environment.hpp"
#include "orchestrators/catalog/catalog.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view name_option = "--job-name=", comment_option = "--comment=",
                           output_option = "--output=";

/// Returns the value of the option with this beginning, such as `--output=`; empty without it.
std::string value_of(const std::vector<std::string>& options, std::string_view beginning) {
  for (const auto& option : options)
    if (option.starts_with(beginning)) return option.substr(beginning.size());
  return {};
}

/// Returns true for an option that srun does not get: srun does not have it, the allocation has
/// decided it, or the shell that starts srun redirects the output.
bool is_left_out(const std::string& option) {
  static constexpr std::string_view names[] = {
      "--parsable", "--array",   "--no-requeue",  "--partition", "--account",   "--qos",
      "--nice",     "--exclude", "--reservation", "--output",    "--constraint"};
  const auto name = option.substr(0, option.find('='));
  return std::ranges::find(names, name) != std::end(names);
}

}  // namespace

std::vector<std::string> srun_words(const std::vector<std::string>& options) {
  std::vector<std::string> words{"srun", "--exact", "--quiet", "--input=none", "--mpi=none"};
  for (const auto& option : options)
    if (!is_left_out(option)) words.push_back(option);
  return words;
}

std::vector<std::string> srun_command(const std::vector<std::string>& options,
                                      const std::string& script) {
  auto command = srun_words(options);
  command.insert(command.end(), {"/bin/sh", "-c", script});
  return command;
}

std::vector<StepProcess> step_processes(const fs::path& proc) {
  std::vector<StepProcess> found;
  for (const auto& folder : core::entries_of(proc)) {
    auto id = folder.filename().string();
    if (!core::all(id, core::is_digit)) continue;
    std::string text;
    try {
      text = core::read_if_file(folder / "cmdline");
    } catch (const core::EnvironmentError&) {  // The process has just ended.
      continue;
    }
    std::vector<std::string> words;
    for (const auto word : core::split(text, '\0')) words.emplace_back(word);
    if (words.empty() || fs::path(words.front()).filename() != "srun") continue;
    auto comment = value_of(words, comment_option);
    if (!comment.starts_with("pipe:")) continue;
    found.push_back({std::move(id), value_of(words, name_option), std::move(comment)});
  }
  return found;
}

AllocationClient::AllocationClient() : Client(""), job_(core::variable("SLURM_JOB_ID")) {
  if (job_.empty())
    throw core::EnvironmentError(
        "`within: allocation` starts steps in a job of Slurm, and `pipe` is not running in one",
        {"run this in a job: salloc --nodes=2 pipe run ...",
         "without `within`, each step is a job of its own"});
}

async::Task<std::string> AllocationClient::submit(std::vector<std::string> options,
                                                  std::string script) {
  const auto output = core::replaced(value_of(options, output_option), "%%", "%");
  // srun has a session of its own, so that the step survives this process. The agent in the step
  // writes PIPE_SLURM_ID, the number of srun's process, to JobPaths::begun(). The script of a step
  // with nodes becomes srun itself (gang_script()).
  const bool is_gang =
      std::ranges::find(options, std::string("--ntasks-per-node=1")) != options.end();
  const auto words =
      is_gang ? std::vector<std::string>{"/bin/sh", "-c", script} : srun_command(options, script);
  const auto start = "PIPE_SLURM_ID=$$ exec " + core::joined(words, " ", core::shell_quote);
  std::vector<std::string> command{"/bin/sh", "-c",
                                   "setsid /bin/sh -c " + core::shell_quote(start) +
                                       " </dev/null >" + core::shell_quote(output) +
                                       " 2>&1 &\necho $!\n"};
  co_return parse_job_id(co_await output_of(std::move(command)));
}

/// Returns the job steps that have begun. Slurm does not list those that wait for room.
async::Task<std::vector<QueuedJob>> AllocationClient::begun_steps() {
  std::vector<std::string> command{"squeue",        "--noheader", "--steps",
                                   "--job=" + job_, "--format",   "%i|RUNNING||%N|%j"};
  co_return parse_queue(co_await output_of(std::move(command)));
}

async::Task<std::vector<QueuedJob>> AllocationClient::jobs() {
  const auto begun = co_await begun_steps();
  std::vector<QueuedJob> jobs;
  for (auto& process : step_processes()) {
    const auto step = std::ranges::find(begun, process.name, &QueuedJob::name);
    QueuedJob job{process.id, "PENDING", "Resources", "", process.name, process.comment};
    if (step != begun.end()) {
      job.state = step->state;
      job.reason = "None";
      job.node = step->node;
    }
    jobs.push_back(std::move(job));
  }
  co_return jobs;
}

async::Task<std::vector<QueuedJob>> AllocationClient::jobs_named(std::string name) {
  auto all = co_await jobs();
  std::erase_if(all, [&](const QueuedJob& job) { return job.name != name; });
  co_return all;
}

async::Task<std::vector<QueuedJob>> AllocationClient::jobs_of_user() { co_return co_await jobs(); }

async::Task<> AllocationClient::cancel_all(std::vector<std::string> ids,
                                           std::vector<std::string> options) {
  std::erase_if(options, [](const auto& option) {  // A job step has no batch script to signal.
    return option == "--batch" || option == "--full";
  });
  const auto begun = co_await begun_steps();
  std::vector<std::string> begun_ids;
  for (const auto& process : step_processes()) {
    if (std::ranges::find(ids, process.id) == ids.end()) continue;
    const auto step = std::ranges::find(begun, process.name, &QueuedJob::name);
    if (step != begun.end())
      begun_ids.push_back(step->id);
    else
      kill(static_cast<pid_t>(std::stol(process.id)), SIGTERM);
  }
  if (!begun_ids.empty()) co_await Client::cancel_all(begun_ids, options);
}

async::Task<std::string> AllocationClient::refusal(std::vector<std::string>) {
  co_return std::string();
}

async::Task<std::optional<std::chrono::seconds>> AllocationClient::expected_wait(
    std::vector<std::string>) {
  co_return std::nullopt;
}

async::Task<ArrayLimits> AllocationClient::limits() { co_return ArrayLimits{}; }

std::unique_ptr<Client> client_of(const StringMap& connection) {
  const auto within = connection_field(connection, "within");
  auto host = connection_field(connection, "host");
  if (within.empty()) return std::make_unique<Client>(host);
  static const std::vector<std::string> known{"allocation"};
  if (within != known.front())
    throw core::InputError("`within` is '" + within + "'; its only value is `allocation`",
                           core::did_you_mean(within, known));
  if (!host.empty())
    throw core::InputError("`host` and `within` exclude each other",
                           "remove `host`: an allocation is where `pipe` itself runs");
  return std::make_unique<AllocationClient>();
}

}  // namespace pipeline::orchestrators::slurm

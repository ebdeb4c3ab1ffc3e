#include "orchestrators/slurm/submitter.hpp"

#include <algorithm>
#include <utility>

#include "async/gate.hpp"
#include "async/sleep.hpp"
#include "core/file.hpp"
#include "core/joined.hpp"
#include "core/text.hpp"
#include "orchestrators/slurm/job_states.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// A batch is closed when no job has joined it for `time_to_gather`, or after max_gathering_time.
constexpr auto time_to_gather = 20ms, max_gathering_time = 500ms;
constexpr auto submission_timeout = 10min;
/// An array has at most a quarter of the jobs that the controller takes, because it is accepted
/// only as a whole, beside the jobs of other users.
constexpr unsigned max_share = 4;

ArrayPaths array_paths(const JobPaths& paths, const std::string& array) {
  return {paths.events.parent_path() / "arrays" / array};
}

struct Task {
  std::string array, number;  ///< Empty for a single job.
};

Task task_of(const JobPaths& paths) {
  auto words = core::words_of(core::read_if_file(paths.array()));
  return words.size() == 2 ? Task{std::move(words[0]), std::move(words[1])} : Task{};
}

}  // namespace

SubmittedJob recorded_job(const JobPaths& paths) {
  const auto task = task_of(paths);
  const auto& name = task.array.empty() ? paths.name : task.array;
  if (const auto begun = core::words_of(core::read_if_file(paths.begun())); !begun.empty())
    return {begun[0], begun.size() > 2 ? begun[2] : name};
  const auto file = task.array.empty() ? paths.id() : array_paths(paths, task.array).id();
  auto id = std::string(core::trimmed(core::read_if_file(file)));
  if (!id.empty() && !task.array.empty()) id += "_" + task.number;
  return {id, name};
}

std::string option_of_output(const fs::path& file) {
  return "--output=" + core::replaced(file.string(), "%", "%%");
}

fs::path slurm_output(const JobPaths& paths) {
  const auto task = task_of(paths);
  return task.array.empty() ? paths.output() : array_paths(paths, task.array).output(task.number);
}

async::Task<std::vector<QueuedJob>> jobs_of(Client& client, JobPaths paths) {
  const auto task = task_of(paths);
  auto jobs = co_await client.jobs_named(task.array.empty() ? paths.name : task.array);
  if (task.array.empty()) co_return jobs;
  std::vector<std::string> ids;
  for (const auto& job : jobs) ids.push_back(std::string(array_of(job.id)) + "_" + task.number);
  std::ranges::sort(ids);
  ids.erase(std::ranges::unique(ids).begin(), ids.end());
  const JobQueue queue(std::move(jobs));
  std::vector<QueuedJob> found;
  for (const auto& id : ids)
    if (const auto* job = queue.find(id)) {
      found.push_back(*job);
      found.back().id = id;
    }
  co_return found;
}

/// If an answer of sbatch was lost and the job was listed late, there may be two jobs: cancels the
/// later one.
async::Task<std::string> find_submitted(Client& client, JobPaths paths) {
  const auto jobs = co_await jobs_of(client, paths);
  const QueuedJob* found = nullptr;
  for (const auto& job : jobs) {
    const auto* state = find_state(job.state);
    if (state && state->phase == JobPhase::ended && !fs::exists(paths.begun())) continue;
    if (!found || std::stoull("0" + job.id) < std::stoull("0" + found->id)) found = &job;
  }
  std::vector<std::string> others;
  for (const auto& job : jobs)
    if (found && job.id != found->id) others.push_back(job.id);
  if (!others.empty()) co_await client.cancel_all(others, std::vector<std::string>());
  co_return found ? found->id : std::string();
}

struct Submitter::Batch {
  explicit Batch(const asio::any_io_executor& executor) : done(executor) {}
  bool is_stopped() const {
    return std::ranges::all_of(members, [](const auto* member) { return member->is_stopped(); });
  }
  std::vector<const Submission*> members;  ///< Their submit() calls wait for `done`.
  std::string name;                        ///< The array's, or that of the only job.
  std::string id;                          ///< Empty: nothing was submitted.
  /// For each submitted job, the rest of its number after `id`: `_3`, or an empty text.
  std::map<const Submission*, std::string> tasks;
  async::Gate done;
  std::exception_ptr error;
  bool is_divided = false;  ///< Its jobs are to be submitted again, in smaller batches.
};

Submitter::Submitter(Client& client, fs::path folder, fs::path agent, const ArrayLimits& limits,
                     std::chrono::milliseconds patience)
    : client_(client),
      folder_(std::move(folder)),
      agent_(std::move(agent)),
      max_array_tasks_(
          std::clamp(limits.max_jobs / max_share, 1U, std::max(limits.max_array_size, 1U))),
      max_tasks_(max_array_tasks_),
      patience_(patience) {}

async::Task<SubmittedJob> Submitter::submit(Submission submission) {
  std::shared_ptr<Batch> batch;
  const auto executor = co_await asio::this_coro::executor;
  do {
    auto& open = open_[submission.options];
    const bool is_first = !open;
    if (is_first) open = std::make_shared<Batch>(executor);
    batch = open;
    batch->members.push_back(&submission);
    if (batch->members.size() >= max_tasks_) open_.erase(submission.options);
    if (is_first) {
      try {
        co_await gather(*batch);
        co_await send(*batch);
        max_tasks_ = std::min(max_tasks_ * 2, max_array_tasks_);
      } catch (const SlurmError& error) {
        batch->is_divided = error.exceeds_submit_limit() && divide(*batch);
        batch->error = std::current_exception();
      } catch (...) {
        batch->error = std::current_exception();
      }
      batch->done.open();
    }
    co_await batch->done.wait();
  } while (batch->is_divided);
  if (batch->error) std::rethrow_exception(batch->error);
  if (batch->id.empty()) co_return SubmittedJob{};
  const auto task = batch->tasks.find(&submission);
  if (task == batch->tasks.end()) co_return SubmittedJob{};
  co_return SubmittedJob{batch->id + task->second, batch->name};
}

/// Waits while more jobs come and for a slot for sbatch, and closes the batch.
async::Task<> Submitter::gather(Batch& batch) {
  const auto& options = batch.members.front()->options;
  const auto is_open = [&] {
    const auto found = open_.find(options);
    return found != open_.end() && found->second.get() == &batch;
  };
  const auto end = Clock::now() + max_gathering_time;
  for (std::size_t known = 0; is_open() && known != batch.members.size() && Clock::now() < end;) {
    known = batch.members.size();
    co_await async::sleep(time_to_gather);
  }
  constexpr std::size_t same_rank = 0;
  co_await sending_slots_.acquire(same_rank);
  if (is_open()) open_.erase(options);
}

async::Task<> Submitter::send(Batch& batch) {
  const async::Permit permit(sending_slots_);
  auto members = batch.members;
  std::erase_if(members, [](const auto* member) { return member->is_stopped(); });
  if (members.empty()) co_return;
  const auto& first = *members.front();
  std::vector<std::string> options;
  if (members.size() == 1) {
    batch.tasks[&first] = "";
    batch.name = first.paths.name;
    options = {"--job-name=" + batch.name, "--chdir=" + first.paths.folder.string(),
               option_of_output(first.paths.output())};
    options.insert(options.end(), first.options.begin(), first.options.end());
    core::write_file_atomically(first.paths.script(), first.script);
    auto script = batch_script(agent_, first.paths);
    batch.id = co_await send_until_known(batch, std::move(options), std::move(script));
    if (!batch.id.empty())
      core::write_file_atomically(first.paths.id(), batch.id + "\n", core::Durability::power);
    co_return;
  }
  // The name is unique: a later driver submits these jobs again only if no array has this name.
  batch.name = first.paths.name + "-and-" + std::to_string(members.size() - 1) + "-more";
  const auto paths = array_paths(first.paths, batch.name);
  core::make_folders(paths.folder);
  for (std::size_t number = 0; number < members.size(); ++number) {
    const auto& member = *members[number];
    batch.tasks[&member] = "_" + std::to_string(number);
    core::write_file_atomically(member.paths.script(), member.script);
    core::write_file_atomically(member.paths.array(),
                                batch.name + " " + std::to_string(number) + "\n");
  }
  const auto list =
      core::joined(members, "", [](const auto* member) { return member->paths.name + "\n"; });
  core::write_file_atomically(paths.list(), list);
  options = {"--array=0-" + std::to_string(members.size() - 1), "--job-name=" + batch.name,
             "--chdir=" + folder_.string(), option_of_output(paths.output("")) + "%a"};
  options.insert(options.end(), first.options.begin(), first.options.end());
  auto script = batch_script(agent_, first.paths, paths.list());
  batch.id = co_await send_until_known(batch, std::move(options), std::move(script));
  if (!batch.id.empty())
    core::write_file_atomically(paths.id(), batch.id + "\n", core::Durability::power);
}

/// Lets the jobs of a refused array be submitted again, in smaller arrays. Returns false if the
/// batch is a single job.
bool Submitter::divide(Batch& batch) {
  if (batch.tasks.size() < 2) return false;
  max_tasks_ = std::min(max_tasks_, batch.tasks.size() / 2);
  for (const auto* member : batch.members) core::remove_tree(member->paths.array());
  return true;
}

/// Returns the number that Slurm has given; empty if all jobs were stopped before.
async::Task<std::string> Submitter::send_until_known(Batch& batch, std::vector<std::string> options,
                                                     std::string script) {
  const auto began = Clock::now();
  auto deadline = began + submission_timeout;
  std::string trouble, id;
  for (auto pause = 1000ms;; pause = std::min<std::chrono::milliseconds>(pause * 2, 30s)) {
    if (batch.is_stopped() && trouble.empty()) break;
    try {
      if (!trouble.empty()) {
        const auto& first = *batch.tasks.begin()->first;
        id = co_await find_submitted(client_, first.paths);
        id = array_of(id);
      }
      if (!id.empty() || batch.is_stopped()) break;
      id = co_await client_.submit(options, script);
      break;
    } catch (const SlurmError& error) {
      const bool has_looked = !std::exchange(trouble, error.what()).empty();
      // If the job is in the queue, it ends when it begins, because its folder is removed.
      if (batch.is_stopped() && has_looked) break;
      const bool may_work_later = error.may_have_worked() || error.is_full();
      if (!may_work_later || Clock::now() >= deadline) throw;
      if (error.exceeds_submit_limit() && batch.tasks.size() > 1) throw;
      if (error.is_full()) deadline = Clock::now() + submission_timeout;
      if (Clock::now() - began >= patience_)
        for (const auto& [member, task] : batch.tasks) member->on_delay(trouble);
    }
    for (const auto end = Clock::now() + pause; Clock::now() < end && !batch.is_stopped();)
      co_await async::sleep(200ms);
  }
  co_return id;
}

}  // namespace pipeline::orchestrators::slurm

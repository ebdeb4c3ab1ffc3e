#include "orchestrators/slurm/job_run.hpp"

#include "async/sleep.hpp"
#include "core/file.hpp"
#include "core/log.hpp"
#include "core/tail_buffer.hpp"
#include "core/text.hpp"
#include "orchestrators/catalog/catalog.hpp"
#include "orchestrators/containers/container_layout.hpp"
#include "orchestrators/nodes.hpp"
#include "orchestrators/processes/failure.hpp"
#include "orchestrators/processes/step_variables.hpp"
#include "orchestrators/slurm/job_files.hpp"
#include "orchestrators/slurm/job_status.hpp"
#include "orchestrators/stopped.hpp"
#include "settings/accelerator.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::ptrdiff_t max_details = 10;  // Lines of Slurm's own output for the job.
constexpr std::size_t output_tail = 8192, largest_status = 1 << 20;
constexpr auto grace = 10s;        // From SIGTERM to SIGKILL.
constexpr auto time_to_kill = 5s;  // For an agent that was told to kill its step.
constexpr auto min_look_pause = 50ms, max_look_pause = 1000ms;  // At the log of a running step.
constexpr auto max_look_pause_before_begin = 10s;
constexpr auto time_to_explain = 15s;   // For Slurm to report why a step was killed.
constexpr auto search_timeout = 10min;  // For a dead driver's job, if Slurm does not answer.
constexpr auto time_to_note = 30s;      // Until the log reports that Slurm does not answer.
constexpr const char* no_answer = "Slurm does not answer: ";
/// Exit codes of an agent that starts the processes of a node.
constexpr int meeting_failed = 125, not_executable = 126, not_executed = 127;

JobPaths job_paths_of(const JobContext& context, const AttemptSpec& attempt) {
  return paths_of(context.folder, job_name_of(attempt));
}

class JobRun {
 public:
  JobRun(JobContext& context, const Attempt& attempt, AgentReport& report,
         const asio::any_io_executor& executor)
      : context_(context),
        attempt_(attempt),
        report_(report),
        job_paths_(job_paths_of(context, attempt)),
        paths_(attempt.process ? node_paths(job_paths_, attempt.process->node) : job_paths_),
        gang_(attempt.process ? &context.gangs.at(job_paths_.name) : nullptr),
        is_in_allocation_(!connection_field(context.connection, "within").empty()),
        changed_(executor),
        log_(paths_.log(),
             [this](bool is_stderr, std::string_view bytes) { take_output(is_stderr, bytes); }) {}
  ~JobRun() { context_.monitor.forget(paths_.name); }
  JobRun(const JobRun&) = delete;
  JobRun& operator=(const JobRun&) = delete;

  async::Task<AttemptResult> run();

 private:
  async::Task<bool> adopt();
  async::Task<std::string> write_files();
  async::Task<> submit(std::string script);
  async::Task<> submit_gang();
  async::Task<> watch();
  async::Task<> stop();
  async::Task<> explain_end(JobStatus status);
  void note_wait();
  void note(std::string text);
  void begin();
  std::vector<std::string> last_lines() const;
  std::optional<Failure> judge(AttemptResult& result);
  std::optional<Failure> failure_of(const JobStatus& status);
  void take_output(bool is_stderr, std::string_view bytes) {
    last_output_.add(bytes);
    attempt_.io.log.write(is_stderr ? Stream::err : Stream::out, bytes);
  }
  core::StopLevel wanted() const { return attempt_.io.cancel.level(); }
  JobView view() const {
    auto view = context_.monitor.view(*entry_);
    view.wanted = wanted();
    return view;
  }

  JobContext& context_;
  const Attempt& attempt_;
  AgentReport& report_;
  const JobPaths job_paths_;     ///< Files of the whole job.
  const JobPaths paths_;         ///< For a step with nodes, files of this node; else `job_paths_`.
  GangJob* const gang_;          ///< Null for a step without nodes.
  const bool is_in_allocation_;  ///< The job is a job step of an allocation (AllocationClient).
  async::Change changed_;
  JobLog log_;
  core::TailBuffer last_output_{output_tail};
  JobMonitor::Entry* entry_ = nullptr;
  SubmittedJob job_;
  std::string node_, noted_;  ///< `noted_`: the last text of note().
  std::optional<JobStatus> status_;
  JobView last_;  ///< The job when watch() ended.
  bool was_killed_ = false, has_begun_ = false;
  enum class Sent { nothing, cancel, term, stop_file, kill } sent_ = Sent::nothing;
  Clock::time_point stopping_{};         ///< When the first stop was sent.
  Clock::time_point stopped_at_once_{};  ///< When the agent was told to kill the step.
  std::optional<Clock::time_point> ended_;
  std::optional<Failure> refused_;
  bool is_requeued_ = false;
};

/// Returns true, and sets `job_`, if a dead driver has submitted a job for this attempt.
async::Task<bool> JobRun::adopt() {
  job_ = recorded_job(job_paths_);
  const auto began = Clock::now();
  for (bool is_known = !job_.id.empty(); !is_known;) {
    try {
      job_.id = co_await find_submitted(context_.client, job_paths_);
      is_known = true;
    } catch (const SlurmError& error) {  // The job may be there: another one must not be submitted.
      const auto time = Clock::now() - began;
      if (time >= search_timeout || wanted() != core::StopLevel::none) throw;
      if (time >= time_to_note) note(no_answer + std::string(error.what()));
    }
    if (!is_known) co_await async::sleep(2s);
  }
  co_return !job_.id.empty();
}

/// Writes the files of this attempt, or of one of its nodes, and returns the script.
async::Task<std::string> JobRun::write_files() {
  if (attempt_.joins) {  // A dead driver has left files, but no job that would use them.
    for (const auto& folder : {attempt_.outputs, attempt_.scratch}) {
      core::remove_tree(folder);
      core::make_folders(folder);
    }
  }
  remove_files(paths_);
  make_private_folder(paths_.folder);
  const processes::Workspace workspace(attempt_, context_.short_folders);
  if (context_.runs_in_image(attempt_.step))
    co_return container_script(paths_,
                               co_await write_container(context_, attempt_, paths_, workspace));
  write_variables(context_, attempt_, workspace, paths_.variables());
  auto command = context_.environments.command(attempt_, workspace.layout());
  if (gang_) {
    const auto words = agent_words(attempt_, context_.agent.string());
    command.insert(command.begin(), words.begin(), words.end());
  }
  co_return job_script(paths_, context_.agent, stall_options(attempt_), workspace.layout().code,
                       command);
}

/// Submits the job of all nodes, or adopts that of a dead driver. Node 0's JobRun does that; the
/// others only write their files, and wait.
async::Task<> JobRun::submit_gang() {
  const bool leads = attempt_.process->node == 0;
  if (leads) {
    if (!attempt_.joins || !co_await adopt()) remove_gang_files(job_paths_);
    gang_->job = job_;
    gang_->is_known.open();
  }
  co_await gang_->is_known.wait();
  if (gang_->job.id.empty() && !gang_->has_error) {
    const auto script = co_await write_files();
    core::write_file_atomically(paths_.script(), script);
    if (++gang_->ready_calls == attempt_.process->nodes) gang_->are_ready.open();
    if (leads) {
      co_await gang_->are_ready.wait();
      make_private_folder(job_paths_.folder);
      auto script_of_all =
          gang_script(job_paths_, context_.agent, attempt_, gang_step(context_, attempt_));
      if (!gang_->has_error) co_await submit(std::move(script_of_all));
      gang_->job = job_;
      gang_->refusal = refused_;
      gang_->is_submitted.open();
    }
    co_await gang_->is_submitted.wait();
  }
  job_ = gang_->job;
  refused_ = gang_->refusal;
}

async::Task<> JobRun::submit(std::string script) {
  Submission submission{
      .paths = job_paths_,
      .options = job_options(attempt_, context_.owner, context_.connection, context_.gres_types),
      .script = std::move(script),
      .is_stopped = [this] { return wanted() != core::StopLevel::none; },
      .on_delay = [this](const std::string& why) { note("not submitted yet: " + why); }};
  try {
    job_ = co_await context_.submitter.submit(std::move(submission));
  } catch (const SlurmError& error) {
    const std::string trouble = error.what();
    if (error.may_have_worked())
      refused_ = Failure{FailureKind::infrastructure,
                         "could not be submitted to Slurm: " + trouble,
                         {"`scontrol ping` shows whether Slurm's controller answers"},
                         {}};
    else
      refused_ =
          Failure{FailureKind::not_started, "was refused by Slurm: " + trouble, error.advice(), {}};
  }
}

void JobRun::begin() {
  if (std::exchange(has_begun_, true)) return;
  const auto text = core::read_if_file(paths_.begun());
  const auto words = core::words_of(text);
  if (words.size() > 1) node_ = words[1];
  // Another job than expected may run the step, if an answer of sbatch was lost.
  if (const auto runs = recorded_job(job_paths_); runs.id != job_.id) {
    job_ = entry_->job = runs;
    entry_->state.clear();
  }
  if (!attempt_.io.on_began) return;
  std::error_code error;
  const auto since = fs::file_time_type::clock::now() - fs::last_write_time(paths_.begun(), error);
  attempt_.io.on_began(error || !attempt_.joins || since < 0s
                           ? 0ms
                           : std::chrono::duration_cast<std::chrono::milliseconds>(since));
}

/// Writes to the log why the job waits, once for each reason.
void JobRun::note_wait() {
  const auto& monitor = context_.monitor;
  const auto* state = find_state(entry_->state);
  std::string text;
  if (!monitor.error().empty() && view().without_answer >= time_to_note)
    text = no_answer + monitor.error();
  else if (!entry_->has_begun && state && state->phase == JobPhase::waiting &&
           entry_->reason != "None" && !entry_->reason.empty())
    text = "waiting: " + entry_->state + ", " + entry_->reason;
  const bool tells = !gang_ || attempt_.process->node == 0;  // Once for all nodes.
  if (tells && !text.empty()) note(text + " (job " + job_.id + ")");
}

void JobRun::note(std::string text) {
  if (text == noted_) return;
  noted_ = std::move(text);
  attempt_.io.log.write(Stream::err, "[slurm] " + noted_ + "\n");
}

/// Passes the wanted stop on to the job. A job that has not begun is cancelled. Otherwise the agent
/// gets a signal and stops the step, at once if the file `stop` exists. If that does not help,
/// Slurm kills all processes of the job. Called again until the job has ended.
async::Task<> JobRun::stop() {
  auto level = wanted();
  if (level == core::StopLevel::none) co_return;
  const auto now = Clock::now();
  if (sent_ == Sent::nothing) stopping_ = now;
  if (level == core::StopLevel::graceful && now - stopping_ >= grace) {
    level = core::StopLevel::immediate;
    was_killed_ = true;
  }
  auto wish = level == core::StopLevel::graceful ? Sent::term : Sent::stop_file;
  // A signal to a script that has not begun would be lost.
  if (!entry_->has_begun && !fs::exists(paths_.begun())) {
    const bool begins_soon =
        gang_ && level == core::StopLevel::graceful && fs::exists(job_paths_.begun());
    wish = begins_soon ? Sent::nothing : Sent::cancel;
  }
  if (wish == Sent::stop_file && sent_ == wish && now - stopped_at_once_ >= time_to_kill)
    wish = Sent::kill;
  if (wish <= sent_) co_return;
  if (wish == Sent::stop_file) core::write_file_atomically(paths_.folder / "stop", "");
  // All processes of the job get the signal, one after the other. Only agents act on it, and only
  // those whose folder has this file.
  const bool is_for_agents = gang_ || is_in_allocation_;
  if (is_for_agents && wish != Sent::cancel)
    core::write_file_atomically(paths_.folder / "stop.soon", "");
  // A controller that was killed may give a number again: Slurm's last answer has to know the job.
  if (!context_.monitor.knows(*entry_)) co_return;
  std::vector<std::string> options;
  if (wish == Sent::kill) options = {"--full", "--signal=KILL"};
  if (wish == Sent::term || wish == Sent::stop_file) {
    options = {"--batch", "--signal=TERM"};
    if (is_for_agents) options = {"--signal=URG"};
  }
  try {
    co_await context_.client.cancel(job_.id, std::move(options));
    sent_ = wish;
    if (wish == Sent::stop_file) stopped_at_once_ = now;
  } catch (const SlurmError&) {  // The next call tries again.
  }
}

async::Task<> JobRun::watch() {
  entry_ = &context_.monitor.watch(paths_.name, job_, [this] { changed_.tell(); });
  const core::CancelSource::Listener listener(attempt_.io.cancel,
                                              [this](core::StopLevel) { changed_.tell(); });
  std::chrono::milliseconds look = min_look_pause;
  for (;;) {
    if (entry_->has_begun) begin();
    const bool has_output = has_begun_ && log_.read();
    report_ = log_.report();
    last_ = view();
    const auto action = next_action(last_);
    if (action != JobAction::wait) break;
    note_wait();
    co_await stop();
    const bool is_stopping = wanted() != core::StopLevel::none;
    if (is_stopping) context_.monitor.expect_news();
    // The pause grows without output, because thousands of attempts would slow each other down.
    look = has_output ? std::chrono::milliseconds(min_look_pause)
                      : std::min<std::chrono::milliseconds>(
                            look * 3 / 2, has_begun_ || is_stopping ? max_look_pause
                                                                    : max_look_pause_before_begin);
    co_await changed_.wait(Clock::now() + (log_.has_more() ? 0ms : look));
  }
}

/// Waits for the job's state in Slurm if Slurm may have killed the step.
async::Task<> JobRun::explain_end(JobStatus status) {
  if (!may_be_caused_by_slurm(status) || wanted() != core::StopLevel::none) co_return;
  const auto until = Clock::now() + time_to_explain;
  for (;;) {
    const auto* state = entry_->is_gone ? nullptr : find_state(entry_->state);
    if (entry_->is_gone || (state && state->phase == JobPhase::ended) || Clock::now() >= until)
      break;
    is_requeued_ = !is_in_allocation_ && waits_again(*entry_, *ended_);
    if (is_requeued_) break;
    context_.monitor.expect_news();
    co_await changed_.wait(std::min(until, Clock::now() + 500ms));
  }
  last_ = view();
}

std::optional<Failure> JobRun::failure_of(const JobStatus& status) {
  const auto* state = last_.is_gone ? nullptr : find_state(last_.state);
  if (is_requeued_ || (may_be_caused_by_slurm(status) && state && state->explains))
    return failure_of_job(last_, job_.id);
  if (status.stopped)  // judge() has handled the stops of this run.
    return Failure{FailureKind::infrastructure,
                   "was stopped by a signal to its Slurm job, not by this run",
                   {},
                   {}};
  if (status.no_container)
    return Failure{FailureKind::environment,
                   "its container could not run" + (node_.empty() ? "" : " on " + node_),
                   {"the nodes need Apptainer, Enroot, Charliecloud or Podman, and user namespaces "
                    "(docs/slurm.md)",
                    "without `container_runtime`, steps run in virtual environments"},
                   last_lines()};
  processes::ProcessEnd end;
  end.exited = status.exit_code.has_value();
  end.code = end.exited ? *status.exit_code : status.signal.value_or(0);
  end.start_error = status.not_executed;
  if (const auto output_end = last_output_.text(); gang_ && end.exited) {
    if (end.code == meeting_failed && output_end.find("pipe: ") != output_end.npos)
      return Failure{FailureKind::infrastructure,
                     "did not reach the other nodes of the step",
                     {"the nodes of a partition have to reach one another by TCP"},
                     {}};
    if (end.code == not_executed && output_end.find("pipe-init: ") != output_end.npos)
      end.start_error = ENOENT;
    if (end.code == not_executable && output_end.find("pipe-init: ") != output_end.npos)
      end.start_error = EACCES;
  }
  const bool is_missing = end.start_error == ENOENT || end.start_error == EACCES;
  if (is_missing && context_.runs_in_image(attempt_.step)) {
    const auto command = command_of(attempt_, containers::container_layout());
    return Failure{FailureKind::not_started,
                   "could not start: its image has no program '" +
                       (command.empty() ? "" : command.front()) + "'",
                   {"add its package to `apt_packages` or `requirements`, or correct the name"},
                   {}};
  }
  if (is_missing) {
    const auto path = processes::path_of(attempt_.step);
    const auto code = fs::absolute(attempt_.scratch) / "code";
    Layout layout;
    layout.code = code.string();
    const auto command = context_.environments.command(attempt_, layout);
    return processes::not_found(command.empty() ? "" : command.front(), path, code);
  }
  const bool out_of_memory = false;  // Slurm's state says so: see JobState::explains.
  auto failure = processes::failure_of(end, out_of_memory, attempt_.step);
  if (failure) {
    const processes::ProcessOptions process;
    processes::explain(*failure, end, process, last_output_.text(),
                       settings::gpu_request(attempt_.step.settings->resources).wanted());
  }
  return failure;
}

/// Returns the failure of the ended job, if it failed, and sets the result's exit code and signal.
std::optional<Failure> JobRun::judge(AttemptResult& result) {
  if (wanted() != core::StopLevel::none && (sent_ != Sent::nothing || !status_))
    return was_killed_ ? had_to_be_killed() : was_stopped();
  if (status_) {
    result.exit_code = status_->exit_code;
    result.signal = status_->signal.value_or(0);
    return failure_of(*status_);
  }
  auto failure = failure_of_job(last_, job_.id);
  failure.details = last_lines();
  return failure;
}

/// Returns the last lines of Slurm's own output for the job.
std::vector<std::string> JobRun::last_lines() const {
  const auto text = core::read_if_file(slurm_output(job_paths_));
  auto lines = core::lines_of(text);
  if (std::ssize(lines) > max_details) lines.erase(lines.begin(), lines.end() - max_details);
  return {lines.begin(), lines.end()};
}

async::Task<AttemptResult> JobRun::run() {
  AttemptResult result;
  if (gang_)
    co_await submit_gang();
  else if (!attempt_.joins || !co_await adopt())
    co_await submit(co_await write_files());
  if (refused_ || job_.id.empty()) {
    result.failure = refused_ ? refused_ : was_stopped();
    co_return result;
  }
  co_await watch();
  if (const auto text = core::read_untrusted_file(paths_.ended(), largest_status))
    status_ = parse_status(*text);
  ended_ = Clock::now();
  co_await log_.read_rest(status_.has_value(), attempt_.io.cancel);
  if (status_) {
    if (status_->not_executed == 0) {
      result.ended = ended_;
      result.began = *ended_ - status_->running;
    }
    result.usage = status_->usage;
    co_await explain_end(*status_);
  }
  try {  // The next attempt is another job, so the requeued one must not run.
    if (is_requeued_) co_await context_.client.cancel(job_.id, std::vector<std::string>());
  } catch (const SlurmError&) {  // The old job ends when it begins, because its folder is removed.
  }
  result.node = !node_.empty() ? node_ : entry_->node;
  if (last_.state == "CANCELLED" && wanted() == core::StopLevel::none)
    last_.node_reason = co_await context_.client.node_reason(last_.node);
  result.failure = judge(result);
  result.was_preempted = was_preempted(last_);
  co_return result;
}

}  // namespace

JobPaths paths_of(const fs::path& folder, const std::string& name) {
  return {folder / "jobs" / name, folder / "events", name};
}

void remove_files(const JobPaths& paths) {
  if (const auto output = slurm_output(paths); output != paths.output()) core::remove_tree(output);
  core::remove_tree(paths.folder);
  core::remove_tree(paths.begun());
  core::remove_tree(paths.ended());
}

async::Task<> end_jobs_of(Client& client, JobPaths paths) {
  constexpr int max_looks = 60;
  for (int looks = 0; looks < max_looks; ++looks) {
    const auto jobs = co_await jobs_of(client, paths);
    std::vector<std::string> running;
    for (const auto& job : jobs) {
      const auto* state = find_state(job.state);
      if (!state || state->phase != JobPhase::ended) running.push_back(job.id);
    }
    if (running.empty()) co_return;
    if (looks == 0) co_await client.cancel_all(running, std::vector<std::string>());
    co_await async::sleep(std::chrono::seconds(1));
  }
}

async::Task<AttemptResult> run_job(JobContext& context, const Attempt& attempt,
                                   AgentReport& report) {
  AttemptResult result;
  if (attempt.io.cancel.level() != core::StopLevel::none && !attempt.process) {
    result.failure = was_stopped();
    co_return result;
  }
  const auto paths = job_paths_of(context, attempt);
  const auto executor = co_await asio::this_coro::executor;
  JobRun run(context, attempt, report, executor);
  std::exception_ptr error;
  try {
    result = co_await run.run();
  } catch (...) {
    error = std::current_exception();
  }
  if (error) {
    if (attempt.process) context.gangs.at(paths.name).fail();
    co_await end_jobs_of(context.client, paths);
    if (!attempt.process) remove_files(paths);
    std::rethrow_exception(error);
  }
  if (!attempt.process)
    result.cleanup = [paths] { remove_files(paths); };
  else if (attempt.process->node == 0)
    result.cleanup = [paths] { remove_gang_files(paths); };
  co_return result;
}

}  // namespace pipeline::orchestrators::slurm

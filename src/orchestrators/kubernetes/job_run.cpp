#include "orchestrators/kubernetes/job_run.hpp"

#include <algorithm>
#include <csignal>

#include "async/change.hpp"
#include "async/joinable_task.hpp"
#include "async/sleep.hpp"
#include "core/file.hpp"
#include "core/scope_guard.hpp"
#include "core/tail_buffer.hpp"
#include "core/text.hpp"
#include "kubernetes_api/json.hpp"
#include "kubernetes_api/log_frames.hpp"
#include "kubernetes_api/time.hpp"
#include "net/url.hpp"
#include "orchestrators/kubernetes/gang_job.hpp"
#include "orchestrators/kubernetes/gang_pods.hpp"
#include "orchestrators/kubernetes/job_cleanup.hpp"
#include "orchestrators/kubernetes/job_requests.hpp"
#include "orchestrators/kubernetes/job_watch.hpp"
#include "orchestrators/kubernetes/kept_log.hpp"
#include "orchestrators/kubernetes/pod_events.hpp"
#include "orchestrators/kubernetes/pod_services.hpp"
#include "orchestrators/kubernetes/pod_shell.hpp"
#include "orchestrators/kubernetes/pod_usage.hpp"
#include "orchestrators/kubernetes/pull_advice.hpp"
#include "orchestrators/kubernetes/service_logs.hpp"
#include "orchestrators/kubernetes/stager_report.hpp"
#include "orchestrators/kubernetes/wait_reasons.hpp"
#include "orchestrators/last_output.hpp"
#include "orchestrators/stopped.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using kubernetes_api::ApiCall;
using kubernetes_api::ApiError;
using kubernetes_api::at;
using kubernetes_api::text_at;
using nlohmann::json;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::size_t job_error_tail = 512, job_output_tail = 8192;  // Bytes.
constexpr auto max_time_after_shell = 10s;  // How long a pod may outlive its shell.
constexpr auto log_timeout = 600s;  // Ends a request for a log, which may stall on rotation.
constexpr auto max_wait_for_stop = 30s;

class JobRun {
 public:
  JobRun(const JobContext& context, const Attempt& attempt, const JobOptions& options,
         asio::any_io_executor executor)
      : client_(context.client),
        attempt_(attempt),
        options_(options),
        files_(context.files),
        pod_{job_name(attempt),
             options.gang_job ? std::optional(attempt.process->node) : std::nullopt},
        executor_(executor),
        changed_(executor),
        informer_(context.informer),
        entry_(informer_.entry(pod_)),
        report_(context.report),
        services_(client_, attempt.io.log, executor),
        reasons_(client_, informer_, attempt, pod_) {
    entry_.on_change = [this] {
      see_gang();
      changed_.tell();
    };
  }
  ~JobRun() { informer_.forget(pod_); }
  JobRun(const JobRun&) = delete;
  JobRun& operator=(const JobRun&) = delete;

  async::Task<AttemptResult> run();
  const std::string& name() const { return pod_.job; }
  const std::string& uid() const { return uid_; }
  /// Returns true if this object creates, removes and reports on the Job; if shared, node 0's does.
  bool leads() const { return !options_.gang_job || pod_.index == 0U; }

 private:
  async::Task<> create();
  async::Task<CreatedJob> make_job();
  async::Task<bool> wait_for_stop();
  async::Task<bool> look_for_pod();
  async::Task<> remove_job();
  async::Task<> watch();
  JobView view();
  void follow(const JobAction& action);
  void see_gang();
  void follow_gang(bool is_running);
  async::Task<bool> gives_back();
  async::Task<> stop(core::StopLevel level);
  async::Task<> fail(JobAction& action);
  async::Task<> read_log();
  async::Task<> attach();
  async::Task<> read_once();
  async::Task<> drain();
  bool was_ended_by_gang() const;
  async::Task<std::optional<Failure>> find_failure();
  async::Task<> take_files(AttemptResult& result);
  void take_output(bool is_stderr, std::string_view bytes);

  bool there_is_no_pod() const { return entry_.pod.is_null() || entry_.pod_gone; }
  std::string pod_name() const { return text_at(entry_.pod, "/metadata/name"); }

  kubernetes_api::Client& client_;
  const Attempt& attempt_;
  const JobOptions& options_;
  PodStaging* const files_;
  const PodOfJob pod_;
  asio::any_io_executor executor_;
  async::Change changed_;  ///< Notified when the result of view() changes.
  JobInformer& informer_;
  JobInformer::Entry& entry_;
  AgentReport& report_;
  ServiceLogs services_;
  WaitReasons reasons_;
  std::string uid_, first_errors_, shell_error_;
  Eviction evicted_;
  std::optional<async::JoinableTask> log_, upload_, telling_, answering_;
  core::CancelSource log_connection_, fetched_, collected_;
  bool pod_ended_ = false, is_told_ = false;    ///< Told: the agent has the other nodes' addresses.
  std::optional<Clock::time_point> log_ended_;  ///< When the step's last output was read.
  std::chrono::nanoseconds staging_time_{};     ///< CreatedJob::staging_time.
  std::uint64_t received_ = 0;
  core::TailBuffer last_output_{job_output_tail};
  kubernetes_api::PodLogFrames frames_{
      [this](bool is_stderr, std::string_view bytes) { take_output(is_stderr, bytes); },
      [this](std::uint64_t offset, std::size_t size) {
        return read_kept_log(attempt_.scratch, offset, size);
      }};
  std::optional<Failure> failure_;  ///< A failure found before the pod ended.
  JobWatch watch_{startup_timeout(attempt_.step),
                  std::chrono::seconds(grace_seconds(attempt_, options_))};
};

async::Task<> JobRun::create() {
  auto made = co_await make_job();
  failure_ = std::move(made.failure);
  staging_time_ = made.staging_time;
  uid_ = text_at(made.job, "/metadata/uid");
  if (entry_.pod.is_null()) entry_.pod = pod_in(made.pods, pod_.index);
  if (entry_.job.is_null()) entry_.job = std::move(made.job);
  see_gang();
}

/// Creates the attempt's Job, or waits until the JobRun of node 0 has created that of all nodes.
async::Task<CreatedJob> JobRun::make_job() {
  auto* const shared = options_.gang_job;
  if (!shared) co_return co_await create_job(client_, attempt_, options_, files_, entry_);
  if (leads()) {
    const core::ScopeGuard settled([shared] { shared->is_settled.open(); });
    shared->created = co_await create_job(client_, attempt_, options_, files_, entry_);
    co_return shared->created;
  }
  {
    const core::CancelSource::Listener stopped(
        attempt_.io.cancel, [shared](core::StopLevel) { shared->is_settled.open(); });
    co_await shared->is_settled.wait();
  }
  auto made = shared->created;
  made.staging_time = {};
  if (!made.job.is_null() && !made.failure) co_return made;
  const bool is_stopped = co_await wait_for_stop();
  made.failure = is_stopped ? was_stopped() : deleted_before_pod(pod_.job);
  co_return made;
}

/// Returns true once the JobRun whose pod failed first has stopped the attempt; false if late.
async::Task<bool> JobRun::wait_for_stop() {
  if (attempt_.io.cancel.level() == core::StopLevel::none)
    co_await async::sleep(max_wait_for_stop, &attempt_.io.cancel);
  co_return attempt_.io.cancel.level() != core::StopLevel::none;
}

/// Returns true if the Job has a pod; the watch may report it later.
async::Task<bool> JobRun::look_for_pod() {
  const auto pods = co_await pods_of_job(client_, pod_.job);
  auto pod = pod_in(kubernetes_api::list_at(pods, "/items"), pod_.index);
  const bool is_there = !pod.is_null();
  if (entry_.pod.is_null()) entry_.pod = std::move(pod);
  co_return is_there;
}

/// Deletes the Job, and its pod with the remaining grace period. A Job of all nodes is not deleted
/// while this pod exists, so that logs of other pods can still be read; it replaces no pods.
async::Task<> JobRun::stop(core::StopLevel level) {
  if (level == core::StopLevel::immediate)
    core::write_file_atomically(attempt_.scratch / stop_file_name, "");
  if (!options_.gang_job || there_is_no_pod()) co_await delete_job(client_, pod_.job, uid_);
  if (there_is_no_pod()) {  // The watch has not reported a pod, but there may be one.
    const bool is_there = co_await look_for_pod();
    if (!is_there) entry_.pod_gone = true;
  }
  if (!there_is_no_pod())
    co_await client_.remove(
        "delete the pod " + pod_name(), client_.path("", "pods", pod_name()),
        text_at(entry_.pod, "/metadata/uid"),
        level == core::StopLevel::immediate ? 1 : grace_seconds(attempt_, options_));
}

async::Task<> JobRun::fail(JobAction& action) {
  failure_ = std::move(action.failure);
  const auto failing = there_is_no_pod() ? pod_.job : pod_name();
  co_await add_warnings(client_, failing, *failure_);
  if (action.state.stage == "node" && reasons_.room == Room::never) {
    const auto nodes = co_await informer_.nodes();
    std::ranges::move(why_none_fits(nodes, at(entry_.pod, "/spec")),
                      std::back_inserter(failure_->details));
  }
  advise_on_pull(entry_.pod, action.state.unfetched, *failure_);
  const auto pod = entry_.pod;
  co_await stop(core::StopLevel::immediate);
  if (action.state.phase != PodState::Phase::running) co_return;
  co_await drain();  // The log shows whether the step had begun.
  if (auto of_service = failure_of_service(pod, frames_.has_begun())) {
    of_service->details = std::move(failure_->details);
    failure_ = std::move(of_service);
  }
  co_await services_.explain(*failure_);
}

JobView JobRun::view() {
  const bool is_log_lost = log_ && log_->error();
  return {.job = entry_.job,
          .pod = entry_.pod,
          .job_gone = entry_.job_gone,
          .pod_gone = entry_.pod_gone,
          .wanted = is_log_lost ? core::StopLevel::immediate : attempt_.io.cancel.level(),
          .output_ended = frames_.ended(),
          .shell_left = attempt_.shell && log_ && log_->done() &&
                        Clock::now() - *log_ended_ >= max_time_after_shell,
          .room = reasons_.room,
          .refused = reasons_.refused,
          .queued = reasons_.queued,
          .has_begun = frames_.has_begun()};
}

/// Begins to read logs once the pod has started; reports the step's begin and the pod's waits.
void JobRun::follow(const JobAction& action) {
  const bool has_started = action.state.phase != PodState::Phase::waiting;
  if (!attempt_.shell) services_.begin(attempt_.step, entry_.pod);
  if (action.state.phase == PodState::Phase::running && attempt_.io.on_began &&
      services_are_ready(entry_.pod))
    attempt_.io.on_began(attempt_.joins ? time_since_start(entry_.pod)
                                        : std::chrono::milliseconds(0));
  if (has_started && !log_ && !entry_.pod_gone)
    log_.emplace(executor_, attempt_.shell ? attach() : read_log(), [this] { changed_.tell(); });
  if (has_started) fetched_.stop(core::StopLevel::immediate);
  if (options_.gang) follow_gang(action.state.phase == PodState::Phase::running);
  if (!action.notice.empty() && (leads() || !entry_.pod.is_null()))
    attempt_.io.log.write(Stream::err, "[kubernetes] waiting: " + action.notice + "\n");
}

void JobRun::see_gang() {
  if (options_.gang)
    options_.gang->see(attempt_.process->node, entry_.pod, Clock::now(), entry_.pod_gone);
}

void JobRun::follow_gang(bool is_running) {
  see_gang();
  if (!is_running || telling_) return;
  auto telling = tell_addresses(
      client_, *options_.gang, pod_name(), [this] { return is_told_; }, log_connection_);
  telling_.emplace(executor_, std::move(telling), [this] { changed_.tell(); });
}

/// Fails the attempt, and returns true, if others have waited too long for this pod to be placed.
async::Task<bool> JobRun::gives_back() {
  if (!options_.gang || failure_ || attempt_.io.cancel.level() != core::StopLevel::none ||
      watch_.stopping() != core::StopLevel::none ||
      !options_.gang->is_overdue(attempt_.process->node, Clock::now()))
    co_return false;
  attempt_.process->addresses->gives_back = true;
  failure_ = options_.gang->failure_of(entry_.pod);
  co_await stop(core::StopLevel::immediate);
  co_return true;
}

/// Deletes the Job of a pod that another program is deleting, so that the pod is not replaced. A
/// Job of all nodes replaces no pods, unless it was suspended and its queue resumes it.
async::Task<> JobRun::remove_job() {
  const bool is_evicted = at(entry_.job, "/spec/suspend") == true;
  if (is_evicted) evicted_ = co_await reasons_.eviction(entry_);
  if (!options_.gang_job || (is_evicted && leads())) co_await delete_job(client_, pod_.job, uid_);
}

/// Waits until the pod has ended or is lost; stops it on request.
async::Task<> JobRun::watch() {
  core::CancelSource::Listener listener(attempt_.io.cancel,
                                        [this](core::StopLevel) { changed_.tell(); });
  for (;;) {
    if (informer_.error()) std::rethrow_exception(informer_.error());
    auto action = watch_.next(view(), Clock::now());
    follow(action);
    using Kind = JobAction::Kind;
    if (action.kind == Kind::end) break;
    if (action.kind == Kind::stop) co_await stop(action.level);
    if (action.kind == Kind::remove) co_await remove_job();
    if (action.kind == Kind::fail) {
      co_await fail(action);
      break;
    }
    if (action.kind != Kind::wait) continue;
    const bool is_given_back = co_await gives_back();
    if (is_given_back) break;
    for (const auto* beside : {&upload_, &telling_})
      if (*beside && (*beside)->error() && watch_.stopping() == core::StopLevel::none)
        std::rethrow_exception((*beside)->error());
    co_await reasons_.look(entry_, watch_.in_stage(Clock::now()), Clock::now());
    const bool is_timed = action.is_timed || log_ended_ || (options_.gang && !is_told_);
    co_await changed_.wait(is_timed ? Clock::now() + 1s : Clock::time_point::max());
  }
  pod_ended_ = true;
  changed_.tell();
}

void JobRun::take_output(bool is_stderr, std::string_view bytes) {
  received_ += bytes.size();
  if (is_stderr) core::append_bounded(first_errors_, bytes, job_error_tail);
  last_output_.add(bytes);
  if (options_.gang && bytes.find("!met\n") != bytes.npos) is_told_ = true;  // See agent/ranks.hpp.
  attempt_.io.log.write(is_stderr ? Stream::err : Stream::out, bytes);
}

async::Task<> JobRun::read_once() {
  std::string query = "?container=" + step_container + "&follow=true&timestamps=true";
  if (const auto last = frames_.last_time())
    query += "&sinceTime=" + net::url_encode(kubernetes_api::format_time(*last));
  ApiCall call("read the log of the pod " + pod_name(), "GET",
               client_.path("", "pods", pod_name()) + "/log" + query);
  call.timeout = log_timeout;
  call.cancel = &log_connection_;
  call.on_body = [this](std::string_view bytes) {
    frames_.feed(bytes);
    report_ = {frames_.waits(), frames_.last_progress()};
    if (frames_.ended() && !log_ended_) log_ended_ = Clock::now();
    if (files_ && !answering_ && !frames_.usage().empty())
      answering_.emplace(executor_, files_->answer(attempt_, collected_));
  };
  frames_.restart();
  co_await client_.send(std::move(call));
}

async::Task<> JobRun::read_log() {
  if (const auto notes = stager_notes(entry_.pod); !notes.empty())
    attempt_.io.log.write(Stream::err, notes);
  async::Backoff backoff({.first_pause = 200ms, .max_pause = 5s, .max_tries = 20});
  while (log_connection_.level() == core::StopLevel::none) {
    const bool is_whole = pod_ended_;  // The log is complete.
    const auto before = received_;
    bool has_failed = true;
    try {
      co_await read_once();
      has_failed = false;
    } catch (const ApiError& error) {
      if (error.status() == 404 || backoff.exhausted()) co_return;
    } catch (const net::TransportError& error) {
      if (backoff.exhausted()) co_return;
    }
    if (frames_.ended() || (is_whole && !has_failed)) co_return;
    if (received_ > before) backoff.reset();
    co_await async::sleep(backoff.next(), &log_connection_);
  }
}

/// Connects a shell with this process's streams. Afterwards its pod ends by itself.
async::Task<> JobRun::attach() {
  const core::ScopeGuard has_ended([this] { log_ended_ = Clock::now(); });
  try {
    co_await connect_pod(client_, pod_name(), attempt_.shell->has_terminal);
  } catch (const core::EnvironmentError& error) {
    shell_error_ = error.what();
  }
}

async::Task<> JobRun::drain() {
  if (log_)
    co_await read_last_output(*log_, changed_, received_, attempt_.io.cancel, log_connection_);
}

bool JobRun::was_ended_by_gang() const {
  return options_.gang_job && !failure_ && watch_.stopping() == core::StopLevel::none &&
         !options_.gang->own_end(*pod_.index, entry_.pod);
}

async::Task<std::optional<Failure>> JobRun::find_failure() {
  const auto code = exit_code_of(entry_.pod);
  if (failure_) co_return failure_;
  if (attempt_.shell && !shell_error_.empty() && !code)
    co_return Failure{FailureKind::infrastructure, shell_error_, {}, {}};
  if (watch_.stopping() == core::StopLevel::graceful && code == 128 + SIGKILL)
    co_return had_to_be_killed();
  const bool is_stopped_late = was_ended_by_gang() && co_await wait_for_stop();
  if (watch_.stopping() != core::StopLevel::none || is_stopped_late) co_return was_stopped();
  if (entry_.pod.is_null()) co_return deleted_before_pod(pod_.job);
  if (auto late = past_deadline(entry_.job, entry_.pod)) co_return late;
  if (at(entry_.job, "/spec/suspend") == true && evicted_.why.empty())
    evicted_ = co_await reasons_.eviction(entry_);
  if (auto evicted = suspended_again(entry_.job, entry_.pod, evicted_.why)) co_return evicted;
  auto own = options_.gang_job ? options_.gang->own_end(*pod_.index, entry_.pod) : std::nullopt;
  const auto pod = own ? std::move(*own) : entry_.pod;
  auto failure =
      failure_of_pod(pod, attempt_, options_.image, {first_errors_, last_output_.text()});
  if (failure) co_await explain(client_, pod, *failure);
  if (!attempt_.shell || !code) co_return failure;
  if (failure && failure->kind == FailureKind::not_started) co_return failure;
  co_return std::nullopt;  // The exit code of a user's shell is not a failure.
}

/// Downloads the outputs and the failure's reason from the remote store, if the agent sent them.
async::Task<> JobRun::take_files(AttemptResult& result) {
  const bool sent = (!failure_ && step_has_ended(result.failure)) ||
                    (watch_.stopping() == core::StopLevel::graceful && frames_.ended());
  if (!sent) {
    co_await files_->abandon(attempt_);
    co_return files_->see_damage(attempt_, damaged_input_of(entry_.pod));
  }
  auto trouble = co_await files_->stage_out(attempt_, result);
  if (trouble) result.failure = std::move(trouble);
}

async::Task<AttemptResult> JobRun::run() {
  AttemptResult result;
  co_await create();
  if (failure_) {
    result.failure = failure_;
    co_return result;
  }
  if (files_ && !addresses_of(attempt_).empty())
    upload_.emplace(executor_, files_->upload_wanted(attempt_, fetched_),
                    [this] { changed_.tell(); });
  std::exception_ptr lost;
  try {
    co_await watch();
  } catch (...) {
    lost = std::current_exception();
  }
  for (auto* source : {&fetched_, &collected_}) source->stop(core::StopLevel::immediate);
  if (upload_) co_await upload_->join();
  if (lost || failure_) log_connection_.stop(core::StopLevel::immediate);
  co_await drain();
  log_connection_.stop(core::StopLevel::immediate);
  if (telling_) co_await telling_->join();
  if (answering_) co_await answering_->join();
  co_await services_.end(300ms);  // Services keep running until the pod is removed.
  if (lost) std::rethrow_exception(lost);
  frames_.finish();
  if (log_ && log_->error()) std::rethrow_exception(log_->error());
  if (frames_.ended())
    if (const auto running = read_pod_usage(frames_.usage(), result); running && log_ended_) {
      result.ended = log_ended_;
      result.began = *log_ended_ - *running;
    }
  result.exit_code = exit_code_of(entry_.pod);
  result.node = text_at(entry_.pod, "/spec/nodeName");
  result.failure = co_await find_failure();
  result.was_preempted = evicted_.is_preemption;
  if (result.failure && result.failure->kind == FailureKind::not_started) result.exit_code.reset();
  if (!files_ || attempt_.shell) co_return result;
  co_await take_files(result);
  result.moved_in = staging_time_ + time_of_fetch(entry_.pod);
  if (log_ended_) result.moved_out = Clock::now() - *log_ended_;
  co_return result;
}

}  // namespace

async::Task<AttemptResult> run_job(const JobContext& context, const Attempt& attempt,
                                   const JobOptions& options) {
  AttemptResult result;
  if (attempt.io.cancel.level() != core::StopLevel::none) {
    result.failure = was_stopped();
    co_return result;
  }
  const auto executor = co_await asio::this_coro::executor;
  std::exception_ptr error;
  JobRun run(context, attempt, options, executor);
  try {
    result = co_await run.run();
  } catch (...) {
    error = std::current_exception();
  }
  auto& [client, informer, removals, report, files] = context;
  add_cleanup({client, removals, files, executor}, attempt, run.name(), run.uid(), result);
  if (!error && !run.leads()) result.cleanup = nullptr;
  if (error) {
    // The pod may still be running, and must not wait for the store.
    if (files) removals.begin(executor, delete_job(client, run.name(), run.uid()));
    result.cleanup();
    co_await removals.settle();
    std::rethrow_exception(error);
  }
  co_return result;
}

}  // namespace pipeline::orchestrators::kubernetes

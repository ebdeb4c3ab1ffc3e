#include "orchestrators/kubernetes/job_run.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "async/joinable_task.hpp"
#include "core/file.hpp"
#include "kubernetes_api/json.hpp"
#include "kubernetes_api/log_frames.hpp"
#include "kubernetes_api/time.hpp"
#include "net/url.hpp"
#include "orchestrators/kubernetes/job_requests.hpp"
#include "orchestrators/kubernetes/kept_log.hpp"
#include "orchestrators/kubernetes/pod_events.hpp"
#include "orchestrators/kubernetes/pod_shell.hpp"
#include "orchestrators/kubernetes/pod_usage.hpp"
#include "orchestrators/kubernetes/pull_advice.hpp"
#include "orchestrators/kubernetes/verdict.hpp"
#include "orchestrators/stopped.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using kubernetes_api::ApiCall;
using kubernetes_api::ApiError;
using kubernetes_api::text_at;
using nlohmann::json;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::size_t job_error_tail = 512, job_output_tail = 8192;
constexpr auto longest_log_silence = 10s;  // For a log whose pod has ended.
constexpr auto longest_reading = 600s;     // For a log: a stream can stall when its files rotate.
constexpr auto quiet_wait = 3s;            // Shorter waits are not reported.
constexpr auto overdue = 30s;  // Beyond the grace period of a deleted pod: its node is then lost.

class JobRun {
 public:
  JobRun(kubernetes_api::Client& client, JobInformer& informer, const Attempt& attempt,
         const JobOptions& place, PodStaging* files, asio::any_io_executor executor,
         std::string& waits)
      : client_(client),
        attempt_(attempt),
        place_(place),
        files_(files),
        name_(job_name(attempt)),
        executor_(executor),
        changed_(executor, Clock::time_point::max()),
        informer_(informer),
        entry_(informer.entry(name_)),
        waits_(waits) {
    entry_.on_change = [this] { changed_.cancel(); };
  }
  ~JobRun() { informer_.forget(name_); }
  JobRun(const JobRun&) = delete;
  JobRun& operator=(const JobRun&) = delete;

  async::Task<AttemptResult> run();
  const std::string& name() const { return name_; }
  const std::string& uid() const { return uid_; }

 private:
  async::Task<> create();
  async::Task<bool> is_there();
  async::Task<> adopt();
  async::Task<bool> look_for_pod();
  async::Task<> watch();
  async::Task<> stop(core::StopLevel level);
  async::Task<> read_log();
  async::Task<> converse();
  async::Task<> read_once();
  async::Task<> drain();
  std::optional<Failure> judge();
  bool is_lost(const PodState& pod_state);
  bool is_hopeless(const PodState& pod_state);
  void say_why(const PodState& pod_state);
  async::Task<> take_files(AttemptResult& result);
  void take_output(bool is_stderr, std::string_view bytes);

  bool there_is_no_pod() const { return entry_.pod.is_null() || entry_.pod_gone; }
  std::string pod_name() const { return text_at(entry_.pod, "/metadata/name"); }
  async::Task<> change(Clock::time_point at_most = Clock::time_point::max()) {
    changed_.expires_at(at_most);
    boost::system::error_code cancelled;
    co_await changed_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
  }

  kubernetes_api::Client& client_;
  const Attempt& attempt_;
  const JobOptions& place_;
  PodStaging* const files_;
  const std::string name_;
  asio::any_io_executor executor_;
  asio::steady_timer changed_;  ///< Cancelled on every change; then the state is checked.
  JobInformer& informer_;
  JobInformer::Entry& entry_;
  std::string& waits_;
  std::string uid_;
  std::optional<async::JoinableTask> log_, help_;
  core::CancelSource log_connection_, fetched_;
  bool pod_ended_ = false;
  std::optional<Clock::time_point> log_ended_;  ///< When the step's last output was read.
  std::chrono::nanoseconds brought_{};  ///< How long this side's part of bringing files took.
  std::size_t received_ = 0;
  std::string first_errors_, last_output_, shell_error_;
  kubernetes_api::PodLogFrames frames_{
      [this](bool is_stderr, std::string_view bytes) { take_output(is_stderr, bytes); },
      [this](std::uint64_t place, std::size_t size) {
        return read_kept_log(attempt_.scratch, place, size);
      }};
  core::StopLevel stopping_ = core::StopLevel::none;
  std::optional<Failure> failure_;  ///< A failure found before the pod ended.
  /// Time limit for pods that do not start.
  const std::chrono::seconds startup_ = std::chrono::ceil<std::chrono::seconds>(
      std::chrono::milliseconds(attempt_.step.settings->kubernetes.pod_startup_timeout.value_or(
          std::chrono::minutes(10))));
  const std::chrono::seconds grace_{grace_seconds(attempt_, place_)};
  std::string stage_;  ///< The reason why the pod waits.
  Clock::time_point waits_since_;
  std::set<std::string> said_;  ///< Reported waits: a kubelet can alternate between two messages.
  std::optional<Clock::time_point> leaves_since_;  ///< When it was last asked to end.
};

/// Returns true if a dead driver has created the Job. If not, files in the attempt's folders are
/// useless to the new pod.
async::Task<bool> JobRun::is_there() {
  bool there = true;
  try {
    co_await adopt();
  } catch (const ApiError& error) {
    if (error.status() != 404) throw;
    there = false;
  }
  if (!there)
    for (const auto& folder : {attempt_.outputs, attempt_.scratch}) {
      core::remove_tree(folder);
      core::make_folders(folder);
    }
  co_return there;
}

/// The Secret is created after the Job, which owns it from the start, so no Secret outlives its Job
/// even if this process is killed in between. Until it exists the pod's containers wait.
async::Task<> JobRun::create() {
  bool exists = attempt_.joins && co_await is_there();
  if (exists && text_at(entry_.pod, "/status/phase") != "Pending" && !entry_.pod.is_null()) {
    uid_ = text_at(entry_.job, "/metadata/uid");
    co_return;  // Its containers have been started, so the Secret existed.
  }
  std::optional<StagedFiles> carried;
  const auto begun = Clock::now();
  if (files_) carried = co_await files_->bring(attempt_);
  brought_ = Clock::now() - begun;
  if (!exists) {
    try {
      entry_.job =
          co_await client_.create("create the Job " + name_, client_.path("batch/v1", "jobs"),
                                  job_manifest(attempt_, place_));
    } catch (const ApiError& error) {
      if (error.status() != 409) throw;
      exists = true;
    }
    if (exists) co_await adopt();
  }
  uid_ = text_at(entry_.job, "/metadata/uid");
  auto secret = secret_manifest(attempt_, place_.owner, carried);
  if (!secret) co_return;
  (*secret)["metadata"]["ownerReferences"] = json::array(
      {json{{"apiVersion", "batch/v1"}, {"kind", "Job"}, {"name", name_}, {"uid", uid_}}});
  try {
    co_await client_.create("create the Secret " + name_, client_.path("", "secrets"), *secret);
  } catch (const ApiError& error) {
    if (error.status() != 409) throw;
  }
}

/// The Job exists: a dead driver created it, or this one did and the response was lost.
async::Task<> JobRun::adopt() {
  auto job = co_await client_.get("read the Job " + name_, client_.path("batch/v1", "jobs", name_));
  for (const auto& [label, value] : job_labels(attempt_, place_.owner))
    if (job["metadata"].value("labels", json::object()).value(label, std::string()) != value)
      throw core::EnvironmentError("cannot create the Job " + name_ +
                                       ": there is one of that name, and it is not this step's",
                                   {"`kubectl -n " + client_.access().name_space +
                                    " describe job " + name_ + "` shows whose it is"});
  entry_.job = std::move(job);
  co_await look_for_pod();
}

/// Returns true if the Job has a pod; the watch may report it later.
async::Task<bool> JobRun::look_for_pod() {
  const auto pods = co_await pods_of_job(client_, name_);
  const auto& items = kubernetes_api::list_at(pods, "/items");
  if (entry_.pod.is_null() && !items.empty()) entry_.pod = items.front();
  co_return !items.empty();
}

/// Deletes the Job, and its pod with the remaining grace period.
async::Task<> JobRun::stop(core::StopLevel level) {
  stopping_ = level;
  leaves_since_ = Clock::now();  // The pod gets its whole time from here on.
  if (level == core::StopLevel::immediate)
    core::write_file_atomically(attempt_.scratch / stop_file_name, "");
  co_await delete_job(client_, name_, uid_);
  if (there_is_no_pod()) {  // None is known.
    const bool is_there = co_await look_for_pod();
    if (!is_there) entry_.pod_gone = true;
  }
  if (!there_is_no_pod())
    co_await client_.remove(
        "delete the pod " + pod_name(), client_.path("", "pods", pod_name()),
        text_at(entry_.pod, "/metadata/uid"),
        level == core::StopLevel::immediate ? 1 : grace_seconds(attempt_, place_));
}

/// A node that is away may be back within the time that a graceful stop gives the step.
bool JobRun::is_lost(const PodState& pod_state) {
  if (!leaves_since_ || !pod_state.leaving) return false;
  if (pod_state.node_is_away && stopping_ != core::StopLevel::graceful) return true;
  const std::chrono::seconds own(
      kubernetes_api::number_at(entry_.pod, "/metadata/deletionGracePeriodSeconds"));
  return Clock::now() - *leaves_since_ > std::max(grace_, own) + overdue;
}

bool JobRun::is_hopeless(const PodState& pod_state) {
  if (pod_state.phase != PodState::Phase::waiting) return false;
  if (pod_state.stage != stage_) {
    stage_ = pod_state.stage;
    waits_since_ = Clock::now();
  }
  return pod_state.hopeless && Clock::now() - waits_since_ >= pod_state.retry_policy;
}

void JobRun::say_why(const PodState& pod_state) {
  if (pod_state.waits_for.empty() || Clock::now() - waits_since_ < quiet_wait ||
      !said_.insert(pod_state.waits_for).second)
    return;
  attempt_.io.log.write(Stream::err, "[kubernetes] waiting: " + pod_state.waits_for + "\n");
}

/// Waits until the pod has ended or is lost; stops it on request.
async::Task<> JobRun::watch() {
  core::CancelSource::Listener listener(attempt_.io.cancel,
                                        [this](core::StopLevel) { changed_.cancel(); });
  for (;;) {
    if (informer_.error()) std::rethrow_exception(informer_.error());
    auto pod_state = entry_.pod.is_null() ? job_status_of(entry_.job, startup_)
                                          : pod_state_of(entry_.pod, startup_);
    if (pod_state.phase == PodState::Phase::running && attempt_.io.on_began) attempt_.io.on_began();
    if (pod_state.phase != PodState::Phase::waiting && !log_ && !entry_.pod_gone)
      log_.emplace(executor_, attempt_.shell ? converse() : read_log(),
                   [this] { changed_.cancel(); });
    if (pod_state.phase == PodState::Phase::ended || entry_.pod_gone) break;
    if (stopping_ != core::StopLevel::none && frames_.ended())
      break;  // The agent is the last process; the cluster reports the pod's end much later.
    if (entry_.job_gone && entry_.pod.is_null() && stopping_ == core::StopLevel::none) break;
    const auto wanted =
        log_ && log_->error() ? core::StopLevel::immediate : attempt_.io.cancel.level();
    if (wanted > stopping_) {
      co_await stop(wanted);
      continue;
    }
    if (pod_state.leaving && !leaves_since_ &&
        stopping_ == core::StopLevel::none) {  // Before the cluster replaces the pod.
      leaves_since_ = Clock::now();
      co_await delete_job(client_, name_, uid_);
      continue;
    }
    if (attempt_.shell && log_ && log_->done() && stopping_ == core::StopLevel::none &&
        Clock::now() - *log_ended_ >= longest_log_silence) {
      co_await stop(core::StopLevel::immediate);
      continue;
    }
    if (is_lost(pod_state)) break;
    if (is_hopeless(pod_state) && stopping_ == core::StopLevel::none) {
      failure_ = std::move(pod_state.hopeless);
      const auto failing = there_is_no_pod() ? name_ : pod_name();
      co_await add_warnings(client_, failing, *failure_);
      if (!pod_state.unfetched.empty()) {
        auto said = failure_->message;
        for (const auto& line : failure_->details) said += "\n" + line;
        failure_->hints = pull_advice(entry_.pod, pod_state.unfetched, said);
      }
      co_await stop(core::StopLevel::immediate);
      break;
    }
    say_why(pod_state);
    if (pod_state.phase != PodState::Phase::waiting) fetched_.stop(core::StopLevel::immediate);
    if (help_ && help_->error() && stopping_ == core::StopLevel::none)
      std::rethrow_exception(help_->error());
    const bool timed = !pod_state.stage.empty() || pod_state.leaving || log_ended_;
    co_await change(timed ? Clock::now() + 1s : Clock::time_point::max());
  }
  pod_ended_ = true;
  changed_.cancel();
}

void JobRun::take_output(bool is_stderr, std::string_view bytes) {
  received_ += bytes.size();
  if (is_stderr && first_errors_.size() < job_error_tail)
    first_errors_ += bytes.substr(0, job_error_tail - first_errors_.size());
  last_output_ += bytes;
  if (last_output_.size() > 2 * job_output_tail)
    last_output_.erase(0, last_output_.size() - job_output_tail);
  attempt_.io.log.write(is_stderr ? Stream::err : Stream::out, bytes);
}

async::Task<> JobRun::read_once() {
  std::string query = "?container=" + step_container + "&follow=true&timestamps=true";
  if (const auto last = frames_.last())
    query += "&sinceTime=" + net::url_encode(kubernetes_api::format_time(*last));
  ApiCall call("read the log of the pod " + pod_name(), "GET",
               client_.path("", "pods", pod_name()) + "/log" + query);
  call.timeout = longest_reading;
  call.cancel = &log_connection_;
  call.on_body = [this](std::string_view bytes) {
    frames_.feed(bytes);
    waits_ = frames_.waits();
    if (frames_.ended() && !log_ended_) log_ended_ = Clock::now();
  };
  frames_.restart();
  co_await client_.send(std::move(call));
}

async::Task<> JobRun::read_log() {
  attempt_.io.log.write(Stream::err, restored_checkpoint(entry_.pod));
  async::Backoff backoff({200ms, 5s, 20});
  while (log_connection_.level() == core::StopLevel::none) {
    const bool whole = pod_ended_;  // The log is complete.
    const auto before = received_;
    bool failed = false;
    try {
      co_await read_once();
    } catch (const ApiError& error) {
      if (error.status() == 404 || backoff.exhausted()) co_return;
      failed = true;
    } catch (const net::TransportError& error) {
      if (backoff.exhausted()) co_return;
      failed = true;
    }
    if (frames_.ended() || (whole && !failed)) co_return;
    if (received_ > before) backoff.reset();
    co_await async::pause_for(backoff.next(), &log_connection_);
  }
}

/// Connects a shell with this process's streams. Afterwards its pod ends by itself.
async::Task<> JobRun::converse() {
  try {
    co_await connect_pod(client_, pod_name(), attempt_.shell->has_terminal);
  } catch (const core::EnvironmentError& error) {
    shell_error_ = error.what();
  }
  log_ended_ = Clock::now();
}

/// Reads the rest of the log.
async::Task<> JobRun::drain() {
  auto heard = received_;
  auto until = Clock::now() + longest_log_silence;
  while (log_ && !log_->done()) {
    co_await change(until);
    if (received_ != heard) {
      heard = received_;
      until = Clock::now() + longest_log_silence;
    } else if (Clock::now() >= until) {
      log_connection_.stop(core::StopLevel::immediate);
    }
  }
}

std::optional<Failure> JobRun::judge() {
  const auto code = exit_code_of(entry_.pod);
  if (failure_) return failure_;
  if (attempt_.shell && !shell_error_.empty() && !code)
    return Failure{FailureKind::infrastructure, shell_error_, {}, {}};
  if (stopping_ != core::StopLevel::none)
    return stopping_ == core::StopLevel::graceful && code == 128 + 9 ? had_to_be_killed()
                                                                     : was_stopped();
  if (entry_.pod.is_null())
    return Failure{
        FailureKind::infrastructure,
        "its Job " + name_ + " was deleted by another user or program before it had a pod",
        {restarted_line},
        {}};
  if (auto late = past_deadline(entry_.job, entry_.pod)) return late;
  const PodEnd end{first_errors_, last_output_};
  auto failure = failure_of_pod(entry_.pod, attempt_, place_.image, end);
  if (!attempt_.shell || !code) return failure;
  if (failure && failure->kind == FailureKind::not_started) return failure;
  return std::nullopt;  // How the user has left it.
}

/// Downloads the outputs and the failure's reason from the remote store, if the agent sent them.
async::Task<> JobRun::take_files(AttemptResult& result) {
  const bool sent =
      step_has_ended(result.failure) || (stopping_ == core::StopLevel::graceful && frames_.ended());
  if (!sent) co_return co_await files_->abandon(attempt_);
  auto trouble = co_await files_->take(attempt_, !result.failure);
  if (trouble) result.failure = std::move(trouble);
}

async::Task<AttemptResult> JobRun::run() {
  AttemptResult result;
  co_await create();
  if (files_ && !addresses_of(attempt_).empty())
    help_.emplace(executor_, files_->help(attempt_, fetched_), [this] { changed_.cancel(); });
  std::exception_ptr lost;
  try {
    co_await watch();
  } catch (...) {
    lost = std::current_exception();
  }
  fetched_.stop(core::StopLevel::immediate);
  if (help_) co_await help_->join();
  if (lost || failure_) log_connection_.stop(core::StopLevel::immediate);
  co_await drain();
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
  result.failure = judge();
  if (result.failure) co_await explain(client_, entry_.pod, *result.failure);
  if (result.failure && result.failure->kind == FailureKind::not_started) result.exit_code.reset();
  if (!files_ || attempt_.shell) co_return result;
  co_await take_files(result);
  result.moved_in = brought_ + time_of_fetch(entry_.pod);
  if (log_ended_) result.moved_out = Clock::now() - *log_ended_;
  co_return result;
}

}  // namespace

async::Task<AttemptResult> run_job(kubernetes_api::Client& client, JobInformer& informer,
                                   const Attempt& attempt, const JobOptions& place,
                                   PodStaging* files, Removals& removals, std::string& waits) {
  AttemptResult result;
  if (attempt.io.cancel.level() != core::StopLevel::none) {
    result.failure = was_stopped();
    co_return result;
  }
  const auto executor = co_await asio::this_coro::executor;
  std::exception_ptr error;
  JobRun run(client, informer, attempt, place, files, executor, waits);
  try {
    result = co_await run.run();
  } catch (...) {
    error = std::current_exception();
  }
  std::vector<std::string> outputs;
  for (const auto& output : attempt.output_names) outputs.push_back(output.name);
  result.cleanup = [&client, &removals, files, executor, name = run.name(), uid = run.uid(),
                    run_id = attempt.run_id, step = attempt.step.name, number = attempt.number,
                    outputs, addresses = addresses_of(attempt)] {
    if (files) removals.begin(executor, files->forget(run_id, step, number, outputs, addresses));
    removals.begin(executor, delete_job(client, name, uid));
  };
  if (files && !attempt.checkpoint_key.empty())
    result.remove_checkpoint = [&removals, files, executor, key = attempt.checkpoint_key] {
      removals.begin(executor, files->forget_checkpoint(key));
    };
  if (error) {
    result.cleanup();
    co_await removals.settle();  // The pod may still be running.
    std::rethrow_exception(error);
  }
  co_return result;
}

}  // namespace pipeline::orchestrators::kubernetes

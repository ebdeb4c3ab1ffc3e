#include "orchestrators/docker/container_session.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "async/retry_policy.hpp"
#include "async/sleep.hpp"
#include "core/log.hpp"
#include "gpu/smi_samples.hpp"
#include "orchestrators/containers/container_end.hpp"
#include "orchestrators/docker/container_spec.hpp"
#include "orchestrators/docker/container_wait.hpp"
#include "orchestrators/docker/engine_usage.hpp"
#include "orchestrators/last_output.hpp"
#include "orchestrators/stopped.hpp"
#include "orchestrators/usage/group_usage.hpp"

namespace pipeline::orchestrators::docker_engine {
namespace {

using docker::EngineError;

constexpr int stop_grace_seconds = 10;
constexpr int exit_code_of_sigkill = 128 + 9;
constexpr std::size_t kept_errors = 512;  // Bytes.
/// Time within which the engine reports the end of a container that it was told to kill.
constexpr std::chrono::seconds max_end_delay{10};
/// Time within which an engine reports that the kernel killed a process for lack of memory.
constexpr std::chrono::milliseconds max_kill_report_delay{2000};
/// The pause between two samples of a container is a hundredth of its age, and at least these
/// times. Reading its memory costs more than reading its CPU time.
constexpr std::chrono::milliseconds shortest_sample_pause{100}, shortest_cpu_pause{5};
constexpr int samples_share = 100;
/// The pause after an engine's answer on a container's usage is 200 times as long as the request
/// took, or a second if that is less.
constexpr int answers_share = 200;
constexpr std::chrono::seconds max_answer_pause{1};

using Clock = std::chrono::steady_clock;

}  // namespace

void ContainerSession::take_output(bool is_stderr, std::string_view bytes, Position& position) {
  received_ += bytes.size();
  auto& seen = seen_[is_stderr];
  const auto known = std::min<std::uint64_t>(seen - position[is_stderr], bytes.size());
  position[is_stderr] += bytes.size();
  bytes.remove_prefix(known);
  seen += bytes.size();
  if (is_stderr && first_errors_.size() < kept_errors)
    first_errors_ += bytes.substr(0, kept_errors - first_errors_.size());
  last_output_.add(bytes);
  if (!bytes.empty()) log_.write(is_stderr ? Stream::err : Stream::out, bytes);
}

/// Attaches before the start. Returns once the stream has ended, perhaps before the container.
async::Task<> ContainerSession::attach() {
  Position position = seen_;
  const std::function<void(bool, std::string_view)> on_bytes =
      [&](bool is_stderr, std::string_view bytes) { take_output(is_stderr, bytes, position); };
  const std::function<void()> on_listening = [this] { note_open_stream(attached_); };
  async::Backoff backoff(engine_.limits().retries);
  while (!attached_) {
    std::exception_ptr lost;
    try {
      co_await engine_.attach_container(id_, on_bytes, on_listening, &connections_);
    } catch (const net::TransportError&) {
      lost = std::current_exception();
    } catch (const EngineError& error) {
      if (!docker::is_retryable(error.status(), error.what())) throw;
      lost = std::current_exception();
    }
    if (connections_.level() != core::StopLevel::none) co_return;
    output_was_cut_ |= attached_ && lost;
    if (!lost || attached_) continue;
    if (backoff.exhausted()) std::rethrow_exception(lost);
    co_await async::sleep(backoff.next(), &connections_);
  }
}

/// Passes on the container's output until it has ended. After an interruption the engine's log is
/// read from its beginning, and the known part is skipped.
async::Task<> ContainerSession::read_output(bool started) {
  if (!started) {
    co_await attach();
    const bool ended = co_await ended_within(std::chrono::seconds(1));
    if (ended && !was_cut_ && !output_was_cut_) co_return;
  }
  async::Backoff backoff(engine_.limits().retries);
  while (connections_.level() == core::StopLevel::none) {
    const bool is_complete = has_ended_;  // No more output will be added.
    const auto before = received_;
    Position position{};
    const std::function<void(bool, std::string_view)> on_bytes =
        [&](bool is_stderr, std::string_view bytes) { take_output(is_stderr, bytes, position); };
    std::string lost;
    try {
      co_await engine_.follow_logs(id_, on_bytes, &connections_);
    } catch (const net::TransportError& error) {
      lost = error.what();
    } catch (const EngineError& error) {
      lost = error.what();
      if (!docker::is_retryable(error.status(), lost)) co_return warn_of_missing_output(lost);
    }
    if (connections_.level() != core::StopLevel::none) co_return;
    if (lost.empty()) {
      const bool ended = co_await ended_within(std::chrono::seconds(1));
      if (is_complete || (ended && !was_cut_)) co_return;
      continue;
    }
    if (received_ > before) backoff.reset();
    if (backoff.exhausted()) co_return warn_of_missing_output(lost);
    co_await async::sleep(backoff.next(), &connections_);
  }
}

void ContainerSession::warn_of_missing_output(const std::string& why) {
  core::log::warn("output of the container " + container_name(attempt_) +
                  " may be missing: " + why);
}

async::Task<bool> ContainerSession::ended_within(std::chrono::milliseconds time) {
  if (!has_ended_) co_await async::sleep(time, &ended_);
  co_return has_ended_;
}

/// Returns true if the container has ended; its exit code is then known. @param next_exit set if it
/// has not been started yet
async::Task<bool> ContainerSession::look_up(bool& next_exit) {
  try {
    const auto state = co_await engine_.inspect_container(id_, nullptr, &connections_);
    next_exit = !state.started;
    if (next_exit || state.running) co_return false;
    exit_code_ = state.exit_code;
    is_oom_killed_ = state.oom_killed;
    if (stopping_ != core::StopLevel::none) co_return true;
    const bool own_end = co_await engine_.saw_own_end(id_, &connections_);
    if (!own_end) lost_ = containers::ended_with_engine(exit_code_);
  } catch (const EngineError& error) {
    if (error.status() != 404) throw;
    lost_ = containers::was_removed(container_name(attempt_));
  }
  co_return true;
}

/// Waits until the container has ended, also across interruptions. Its exit code counts only if the
/// engine saw it end by itself: a restarting engine stops its containers and still reports exit
/// codes, and a step that handles SIGTERM may exit with 0.
async::Task<> ContainerSession::await_end(bool started) {
  ContainerWait wait{.id = id_,
                     .cancel = connections_,
                     .next_exit = !started,
                     .on_listening = [this] { note_open_stream(waiting_); },
                     .has_ended =
                         [this](bool& next_exit, bool was_cut) {
                           was_cut_ |= was_cut;
                           return look_up(next_exit);
                         }};
  co_await wait_for_end(engine_, std::move(wait));
  has_ended_ = true;
  ended_.stop(core::StopLevel::immediate);
}

/// Runs a task that may fail because the container has just ended; ignores the error.
async::Task<> ContainerSession::ignoring_errors(async::Task<> task) {
  try {
    co_await std::move(task);
  } catch (const core::EnvironmentError& error) {
    if (core::log::debug_enabled()) core::log::debug(error.what());
  }
}

/// Waits until the container has ended; stops it on request.
async::Task<> ContainerSession::watch(async::JoinableTask& output, async::JoinableTask& end) {
  core::CancelSource::Listener listener(attempt_.io.cancel,
                                        [this](core::StopLevel) { changed_.tell(); });
  std::optional<async::JoinableTask> stop;
  auto until = Clock::time_point::max();
  while (!end.done()) {
    const auto wanted =
        output.error() || hangs_ ? core::StopLevel::immediate : attempt_.io.cancel.level();
    if (wanted == core::StopLevel::immediate && stopping_ != core::StopLevel::immediate) {
      stopping_ = wanted;
      until = Clock::now() + max_end_delay;
      co_await ignoring_errors(engine_.kill_container(id_, "SIGKILL"));
    } else if (wanted == core::StopLevel::graceful && stopping_ == core::StopLevel::none) {
      stopping_ = wanted;
      stop.emplace(executor_, ignoring_errors(engine_.stop_container(id_, stop_grace_seconds)));
    } else {
      co_await changed_.wait(until);
      if (Clock::now() >= until) connections_.stop(core::StopLevel::immediate);
    }
  }
  if (stop) co_await stop->join();
}

/// Returns true if the kernel killed a process of the container for lack of memory. On a busy
/// machine the engine reports the kill up to a second after the end, or never. The kernel of this
/// machine counts its kills; the count is used only for a step with a memory limit, because the
/// kill may concern another process.
async::Task<bool> ContainerSession::killed_for_memory() {
  const bool killed = exit_code_ == exit_code_of_sigkill && stopping_ == core::StopLevel::none;
  const bool limited = attempt_.step.settings->resources.memory.has_value();
  const bool own_kernel = engine_.endpoint().url.starts_with("unix://");
  const auto until = std::chrono::steady_clock::now() +
                     (limited ? max_kill_report_delay : max_kill_report_delay / 10);
  while (true) {
    docker::ContainerState state;
    try {
      state = co_await engine_.inspect_container(id_, &attempt_.io.cancel);
    } catch (const EngineError& error) {
      if (error.status() != 404) throw;
      co_return false;  // Another program has removed the container.
    }
    if (state.oom_killed && own_kernel) kills_.take();
    if (state.oom_killed || !killed) co_return state.oom_killed;
    if (limited && own_kernel && kills_.take()) co_return true;
    if (std::chrono::steady_clock::now() >= until) co_return false;
    co_await async::sleep(std::chrono::milliseconds(100));
  }
}

/// Samples the GPUs of a container of another machine, from inside, until it has ended.
async::Task<> ContainerSession::measure_gpus() {
  gpu::SmiSamples samples;
  std::vector<std::string> command(gpu::smi_command.begin(), gpu::smi_command.end());
  const std::function<void(bool, std::string_view)> feed = [&samples](bool is_stderr,
                                                                      std::string_view bytes) {
    if (!is_stderr) samples.feed(bytes);
  };
  try {
    co_await engine_.run_in_container(id_, std::move(command), feed, &ended_);
  } catch (const core::EnvironmentError& error) {  // The container may have just ended.
    if (core::log::debug_enabled()) core::log::debug(error.what());
  }
  for (const auto& gpu : samples.gpus()) usage_.gpus.push_back(gpu::usage_of(gpu.uuid, gpu.sums));
}

/// Samples the usage that the engine counts, until the container has ended. Each answer costs the
/// engine milliseconds, so the pauses are much longer than that.
async::Task<> ContainerSession::measure_by_engine() {
  const auto start = Clock::now();
  asio::steady_timer pause(executor_);
  const core::CancelSource::Listener listener(ended_, [&](core::StopLevel) { pause.cancel(); });
  while (ended_.level() == core::StopLevel::none) {
    const auto asked = Clock::now();
    try {
      add_engine_sample(co_await engine_.container_stats(id_, ended_), usage_);
    } catch (const core::EnvironmentError& error) {
      if (core::log::debug_enabled()) core::log::debug(error.what());
    }
    if (ended_.level() != core::StopLevel::none) break;
    const auto now = Clock::now();
    const auto beside = std::min<Clock::duration>((now - asked) * answers_share, max_answer_pause);
    pause.expires_after(std::max<Clock::duration>(beside, (now - start) / samples_share));
    boost::system::error_code cancelled;
    co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
  }
}

/// Samples the usage of a container of another machine, until it has ended.
async::Task<> ContainerSession::measure_remotely() {
  async::JoinableTask accounts(executor_, measure_by_engine());
  if (!attempt_.gpus.empty()) co_await measure_gpus();
  co_await accounts.join();
}

/// Reads the container's usage from its control group until its first process has ended. The engine
/// removes the group some milliseconds later; on a busy machine the last reading may come too late,
/// so CPU time is read often.
async::Task<> ContainerSession::measure() {
  if (!engine_.endpoint().is_of_this_machine()) co_return co_await measure_remotely();
  usage::GroupUsage group(usage::find_container_group(id_));
  const auto first = first_process(group.folders());
  const int file = first > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, first, 0)) : -1;
  if (file < 0) {  // The container has ended already.
    usage_ = group.read();
    co_return;
  }
  asio::posix::stream_descriptor process(executor_, file);
  asio::steady_timer pause(executor_);
  const auto is_over = std::make_shared<bool>(false);
  process.async_wait(asio::posix::stream_descriptor::wait_read,
                     [is_over, &pause](boost::system::error_code) {
                       *is_over = true;
                       pause.cancel();
                     });
  const core::CancelSource::Listener listener(ended_, [&](core::StopLevel) { process.cancel(); });
  const auto start = Clock::now();
  group.sample();  // A short container may have no other sample.
  for (auto next_memory = start + shortest_sample_pause;;) {
    const auto age = Clock::now() - start;
    pause.expires_after(std::max<Clock::duration>(shortest_cpu_pause, age / samples_share));
    boost::system::error_code cancelled;
    co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    if (*is_over) break;
    const auto now = Clock::now();
    if (now < next_memory) {
      group.sample_cpu();
      continue;
    }
    group.sample();
    next_memory = now + std::max<Clock::duration>(shortest_sample_pause, age / samples_share);
  }
  gone_ = Clock::now();
  usage_ = group.read();
}

/// Returns the failure of a container that has ended; nothing if it succeeded.
async::Task<std::optional<Failure>> ContainerSession::find_failure(const std::string& image) {
  if (hangs_ && attempt_.io.cancel.level() == core::StopLevel::none)
    co_return preflight_hangs(preflight_timeout);
  const bool ignored_stop =
      stopping_ == core::StopLevel::graceful && exit_code_ == exit_code_of_sigkill;
  if (stopping_ != core::StopLevel::none)
    co_return ignored_stop ? had_to_be_killed() : was_stopped();
  if (gate_ && !gate_->is_open() && exit_code_ == gate_closed)
    if (auto failure = preflight_failure(gate_->report(), attempt_.gpus, GpuVisibility::its_own))
      co_return failure;
  if (lost_) co_return lost_;
  if (exit_code_ == 0) co_return std::nullopt;
  const bool for_memory =
      usage_.memory_kills.has_value() || is_oom_killed_ || co_await killed_for_memory();
  const containers::ContainerEnd end{exit_code_, for_memory, first_errors_, last_output_.text()};
  co_return failure_of(end, attempt_, image);
}

/// Starts the container once its output and its end are listened to, unless the attempt is stopped
/// before.
async::Task<> ContainerSession::start_attached(const async::JoinableTask& output,
                                               const async::JoinableTask& end) {
  const core::CancelSource::Listener stop(attempt_.io.cancel,
                                          [this](core::StopLevel) { changed_.tell(); });
  const auto is_stopped = [this] { return attempt_.io.cancel.level() != core::StopLevel::none; };
  while (!(attached_ && waiting_) && !output.done() && !end.done() && !is_stopped())
    co_await changed_.wait();
  for (const auto* listener : {&output, &end})
    if (listener->error()) std::rethrow_exception(listener->error());
  if (is_stopped())
    lost_ = was_stopped();
  else
    co_await engine_.start_container(id_, &attempt_.io.cancel);
}

async::Task<AttemptResult> ContainerSession::run(bool started, const std::string& image) {
  AttemptResult result;
  const auto tell = [this] { changed_.tell(); };
  async::JoinableTask output(executor_, read_output(started), tell);
  async::JoinableTask end(executor_, await_end(started), tell);
  std::optional<async::JoinableTask> measuring;
  std::optional<EngineError> refused;
  std::exception_ptr lost;
  try {
    if (!started) co_await start_attached(output, end);
    if (!lost_) {
      began_ = std::chrono::steady_clock::now();
      if (attempt_.io.on_began) attempt_.io.on_began({});
      measuring.emplace(executor_, measure());
      if (gate_) preflight_timeout_.start(preflight_timeout);
    }
  } catch (const EngineError& error) {
    // The container may have started, the response been lost, and the container removed since.
    if (error.is_no_such_container())
      lost_ = containers::was_removed(container_name(attempt_));
    else
      refused = error;
  } catch (...) {
    lost = std::current_exception();
  }
  if (refused || lost || lost_) {
    connections_.stop(core::StopLevel::immediate);
    ended_.stop(core::StopLevel::immediate);  // The container does not run, so it will not end.
  } else {
    co_await watch(output, end);
  }
  co_await end.join();
  if (end.error()) connections_.stop(core::StopLevel::immediate);
  if (measuring) {
    ended_.stop(core::StopLevel::immediate);
    co_await measuring->join();
    result.usage = usage_;
    result.began = began_;
    result.ended = gone_.value_or(std::chrono::steady_clock::now());
  }
  co_await read_last_output(output, changed_, received_, attempt_.io.cancel, connections_);
  if (gate_) gate_->finish();

  if (refused) {
    refusal_ = refused->what();
    result.failure = containers::start_failure(*refused, attempt_, image);
    co_return result;
  }
  if (lost) std::rethrow_exception(lost);
  if (end.error() && !lost_) std::rethrow_exception(end.error());
  if (!lost_) result.exit_code = exit_code_;
  if (output.error() && !lost_) std::rethrow_exception(output.error());
  result.failure = co_await find_failure(image);
  const bool out_of_memory =
      is_oom_killed_ || (result.failure && result.failure->kind == FailureKind::out_of_memory);
  if (out_of_memory && !result.usage.memory_kills) result.usage.memory_kills = 1;
  if (gate_ && !gate_->is_open()) result.exit_code.reset();  // The exit code is the gate's own.
  co_return result;
}

}  // namespace pipeline::orchestrators::docker_engine

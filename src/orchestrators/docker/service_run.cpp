#include "orchestrators/docker/service_run.hpp"

#include <algorithm>
#include <utility>

#include "async/deadline.hpp"
#include "async/joinable_task.hpp"
#include "async/sleep.hpp"
#include "core/log.hpp"
#include "core/quantity.hpp"
#include "core/text.hpp"
#include "orchestrators/containers/container_end.hpp"
#include "orchestrators/containers/service_output.hpp"
#include "orchestrators/docker/container_wait.hpp"
#include "orchestrators/docker/file_copy.hpp"
#include "orchestrators/docker/service_spec.hpp"

namespace pipeline::orchestrators::docker_engine {
namespace {

using docker::EngineError;
using namespace std::chrono_literals;

constexpr auto default_ready_timeout = 2min;
constexpr std::chrono::milliseconds first_look_pause = 100ms, max_look_pause = 1s;
constexpr auto max_output_delay = 2s;  ///< How long the last output of a container may take.

}  // namespace

/// Writes `[db] LINE` to the step's log.
void ServiceRun::take_line(bool is_stderr, std::string_view line) {
  attempt_.io.log.write(is_stderr ? Stream::err : Stream::out,
                        "[" + name_ + "] " + std::string(line) + "\n");
}

void ServiceRun::take_output(bool is_stderr, std::string_view bytes) {
  last_output_.add(bytes);
  lines_[is_stderr].feed(bytes, [&](std::string_view line) { take_line(is_stderr, line); });
}

/// Records the first failure, with the last lines of the service's output, and those of its last
/// check if that has kept it from being ready.
void ServiceRun::fail(FailureKind kind, const std::string& what, std::vector<std::string> hints) {
  if (failure_) return;
  failure_ = Failure{kind, title() + what, std::move(hints), {}};
  if (is_late_ &&
      core::trimmed(check_output_) != why_not_ready_)  // The check has printed further lines.
    containers::add_last_lines(name_ + " check", check_output_, *failure_);
  containers::add_last_lines(name_, last_output_.text(), *failure_);
  on_change_();
}

/// Returns the identifier of a new container that has the attempt's files.
async::Task<std::string> ServiceRun::create() {
  const auto container = container_name(attempt_) + "-" + name_;
  const auto platform = attempt_.step.settings->docker.platform.value_or("");
  co_await engine_.remove_container(container);  // A dead driver may have left one.
  auto options = options_;
  std::string id;
  try {
    auto body = service_body(attempt_, options, name_, image_);
    id = co_await engine_.create_container(container, std::move(body), platform,
                                           &attempt_.io.cancel);
  } catch (const EngineError& error) {
    if (options.elsewhere || !is_elsewhere(error, attempt_)) throw;
    options.elsewhere = true;
  }
  if (id.empty()) {
    auto body = service_body(attempt_, options, name_, image_);
    id = co_await engine_.create_container(container, std::move(body), platform,
                                           &attempt_.io.cancel);
  }
  if (options.elsewhere) {
    auto files = attempt_;
    files.checkpoint.clear();
    co_await copy_in(engine_, files, id, options.init);
  }
  co_return id;
}

async::Task<> ServiceRun::start() {
  std::optional<EngineError> refused;
  try {
    id_ = co_await create();
    co_await engine_.start_container(id_, &attempt_.io.cancel);
  } catch (const EngineError& error) {
    refused = error;
  }
  if (!refused) co_return;
  const auto reason = containers::start_failure(*refused, attempt_, spec_.image);
  const auto is_command = reason.message.starts_with("could not start: ");
  fail(reason.kind == FailureKind::infrastructure ? reason.kind : FailureKind::not_started,
       "could not start: " + std::string(refused->what()),
       is_command ? std::vector<std::string>{} : refused->advice());
}

async::Task<> ServiceRun::pass_output() {
  const std::function<void(bool, std::string_view)> on_bytes =
      [this](bool is_stderr, std::string_view bytes) { take_output(is_stderr, bytes); };
  try {
    co_await engine_.follow_logs(id_, on_bytes, &connections_);
  } catch (const core::EnvironmentError& error) {
    if (connections_.level() == core::StopLevel::none)
      core::log::info("the output of the service '" + name_ + "' ends early: " + error.what());
  }
  for (const bool is_stderr : {false, true})
    if (auto& lines = lines_[is_stderr]; !lines.rest().empty()) {
      take_line(is_stderr, lines.rest());
      lines.clear();
    }
}

/// Runs a check in the container. Returns its exit code; -1 if it could not run.
async::Task<int> ServiceRun::run_check(std::vector<std::string> check, core::CancelSource& cancel) {
  constexpr std::size_t check_tail = 1024;  // Bytes.
  core::TailBuffer out(check_tail), err(check_tail);
  const std::function<void(bool, std::string_view)> keep =
      [&](bool is_stderr, std::string_view bytes) { (is_stderr ? err : out).add(bytes); };
  const auto program = check.front();
  int code = -1;
  try {
    code = co_await engine_.run_in_container(id_, std::move(check), keep, &cancel);
  } catch (const core::EnvironmentError& error) {
    err.add(error.what());
  }
  if (cancel.level() != core::StopLevel::none) co_return -1;
  check_output_ = out.text();
  if (!check_output_.empty() && !check_output_.ends_with('\n')) check_output_ += '\n';
  check_output_ += err.text();
  why_not_ready_ = containers::last_line_of(check_output_);
  if (why_not_ready_.empty())
    why_not_ready_ = "`" + program + "` ended with exit code " + std::to_string(code);
  co_return code;
}

async::Task<> ServiceRun::await_readiness() {
  const auto executor = co_await asio::this_coro::executor;
  const auto check = readiness_check(spec_.ready, options_);
  if (check.empty()) {
    fail(
        FailureKind::not_started,
        "cannot be checked: containers of this engine cannot run pipe's program that looks at "
        "ports",
        {"`ready: {command: [...]}` names a program of its image that ends with 0 once it is ready",
         "or put the state folder on a file system without `noexec`, on a machine with the "
         "engine's "
         "processor"});
    stop();
    co_return;
  }
  async::Deadline limit(executor, connections_, spec_.ready.timeout.value_or(default_ready_timeout),
                        core::StopLevel::immediate);
  auto pause = first_look_pause;
  while (limit.source().level() == core::StopLevel::none) {
    const auto code = co_await run_check(check, limit.source());
    if (code == 0) {
      is_ready_ = true;
      on_change_();
      co_return;
    }
    co_await async::sleep(pause, &limit.source());
    pause = std::min(pause * 2, max_look_pause);
  }
  is_late_ = limit.expired();
  if (is_late_) stop();
}

async::Task<docker::ContainerState> ServiceRun::state() {
  docker::ContainerState state;
  try {
    state = co_await engine_.inspect_container(id_, nullptr, &connections_);
  } catch (const EngineError& error) {
    if (error.status() != 404) throw;
    state.error = "it was removed";
  }
  co_return state;
}

/// Waits until the container has ended, also across interruptions, or stop() is called.
async::Task<> ServiceRun::await_end() {
  ContainerWait wait{
      .id = id_, .cancel = connections_, .has_ended = [this](bool&, bool) -> async::Task<bool> {
        end_ = co_await state();
        co_return !end_.running;
      }};
  co_await wait_for_end(engine_, std::move(wait));
}

async::Task<> ServiceRun::run() {
  const auto executor = co_await asio::this_coro::executor;
  co_await start();
  if (failure_) co_return;
  async::JoinableTask output(executor, pass_output());
  async::JoinableTask readiness(executor, await_readiness());
  std::exception_ptr lost;
  try {
    co_await await_end();
  } catch (...) {
    lost = std::current_exception();
  }
  const bool stop_was_called = connections_.level() != core::StopLevel::none;
  const bool has_ended = !lost && !stop_was_called;
  if (has_ended) {
    async::Timeout limit(executor, [this] { stop(); });
    limit.start(max_output_delay);
    co_await output.join();
  }
  stop();
  co_await output.join();
  co_await readiness.join();
  if (lost && !stop_was_called) std::rethrow_exception(lost);
  const std::string when = is_ready_ ? " while the step ran" : " before it was ready";
  const auto kind = is_ready_ ? FailureKind::exit_code : FailureKind::not_started;
  if (is_late_)
    fail(FailureKind::not_started,
         "was not ready within " +
             core::format_duration(spec_.ready.timeout.value_or(default_ready_timeout)) +
             (why_not_ready_.empty() ? "" : ": " + why_not_ready_),
         {"`ready: {timeout: 10m}` gives it more time",
          "it must accept connections at all its addresses (0.0.0.0), not at 127.0.0.1 alone"});
  else if (has_ended && !end_.error.empty())
    fail(FailureKind::infrastructure, "is gone: " + end_.error, {});
  else if (has_ended && end_.oom_killed)
    fail(kind, "was killed" + when + " because it used too much memory",
         {"raise `resources: {memory: ...}` of the service"});
  else if (has_ended)
    fail(kind, "ended with exit code " + std::to_string(end_.exit_code) + when, {});
}

}  // namespace pipeline::orchestrators::docker_engine

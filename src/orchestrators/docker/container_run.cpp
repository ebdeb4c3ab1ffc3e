#include "orchestrators/docker/container_run.hpp"

#include <optional>
#include <utility>

#include "core/log.hpp"
#include "net/companion.hpp"
#include "orchestrators/docker/container_end.hpp"

namespace pipeline {
namespace {

using docker::EngineApi;
using docker::EngineError;
using nlohmann::json;

constexpr int grace_seconds = 10;
constexpr std::size_t kept_errors = 512;
/// After the end nothing more is written; what is on its way comes without long pauses.
constexpr std::chrono::seconds longest_silence{10};

Failure cancelled() { return {FailureKind::cancelled, "was stopped", {}, {}}; }

/// A container that exists, on its way to its end.
class ContainerRun {
 public:
  ContainerRun(EngineApi& engine, const Attempt& attempt, std::string id, asio::any_io_executor executor)
      : engine_(engine),
        attempt_(attempt),
        id_(std::move(id)),
        executor_(std::move(executor)),
        changed_(executor_, asio::steady_timer::time_point::max()) {}

  /// @param started it runs already, or has ended: it is joined
  Task<AttemptResult> run(bool started, const std::string& image);

 private:
  Task<> read_output(bool started);
  Task<> wait_for_end(bool started);
  Task<> quietly(Task<> task);
  Task<> watch(net::Companion& output, net::Companion& end);
  Task<> drain(net::Companion& output);
  Task<ContainerEnd> look_at_end();
  void heard() {
    if (++listening_ == 2) changed_.cancel();
  }
  Task<> change() {
    boost::system::error_code cancelled;
    co_await changed_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
  }

  EngineApi& engine_;
  const Attempt& attempt_;
  const std::string id_;
  asio::any_io_executor executor_;
  asio::steady_timer changed_;  ///< Cancelled when something has happened: whoever waits looks again.
  CancelSource connections_;
  int listening_ = 0;
  int exit_code_ = 0;
  std::string first_errors_;
  std::size_t received_ = 0;
  StopLevel stopping_ = StopLevel::none;
};

Task<> ContainerRun::read_output(bool started) {
  const std::function<void(bool, std::string_view)> on_bytes = [this](bool is_stderr, std::string_view bytes) {
    received_ += bytes.size();
    if (is_stderr && first_errors_.size() < kept_errors) first_errors_ += bytes.substr(0, kept_errors - first_errors_.size());
    attempt_.log.write(is_stderr ? Stream::err : Stream::out, bytes);
  };
  const std::function<void()> on_listening = [this] { heard(); };
  if (started)
    co_await engine_.follow_logs(id_, on_bytes, &connections_);
  else
    co_await engine_.attach_container(id_, on_bytes, on_listening, &connections_);
}

Task<> ContainerRun::wait_for_end(bool started) {
  const std::function<void()> on_listening = [this] { heard(); };
  const std::string condition = started ? "not-running" : "next-exit";
  exit_code_ = co_await engine_.wait_container(id_, condition, on_listening, &connections_);
}

/// For what may fail because the container has just ended.
Task<> ContainerRun::quietly(Task<> task) {
  try {
    co_await std::move(task);
  } catch (const EnvironmentError& error) {
    if (log::debug_enabled()) log::debug(error.what());
  }
}

/// Until the container has ended; stops it when that is wanted.
Task<> ContainerRun::watch(net::Companion& output, net::Companion& end) {
  CancelSource::Listener listener(attempt_.cancel, [this](StopLevel) { changed_.cancel(); });
  std::optional<net::Companion> stop;
  while (!end.done()) {
    const auto wanted = output.error() ? StopLevel::immediate : attempt_.cancel.level();
    if (wanted == StopLevel::immediate && stopping_ != StopLevel::immediate) {
      stopping_ = wanted;
      co_await quietly(engine_.kill_container(id_, "SIGKILL"));
    } else if (wanted == StopLevel::graceful && stopping_ == StopLevel::none) {
      stopping_ = wanted;
      stop.emplace(executor_, quietly(engine_.stop_container(id_, grace_seconds)));
    } else {
      co_await change();
    }
  }
  if (stop) co_await stop->join();
}

Task<> ContainerRun::drain(net::Companion& output) {
  while (!output.done()) {
    const auto before = received_;
    asio::steady_timer silence(executor_, longest_silence);
    silence.async_wait([this](boost::system::error_code stopped) {
      if (!stopped) changed_.cancel();
    });
    co_await change();
    if (!output.done() && received_ == before) connections_.stop(StopLevel::immediate);
  }
}

Task<ContainerEnd> ContainerRun::look_at_end() {
  ContainerEnd end{exit_code_, false, first_errors_};
  if (exit_code_ == 0) co_return end;
  auto state = co_await engine_.inspect_container(id_);
  if (exit_code_ == 137 && !state.oom_killed && stopping_ == StopLevel::none) {  // the news of the kill can come after that of the end
    asio::steady_timer pause(executor_, std::chrono::milliseconds(200));
    co_await pause.async_wait(asio::use_awaitable);
    state = co_await engine_.inspect_container(id_);
  }
  end.oom_killed = state.oom_killed;
  co_return end;
}

Task<AttemptResult> ContainerRun::run(bool started, const std::string& image) {
  AttemptResult result;
  const auto tell = [this] { changed_.cancel(); };
  net::Companion output(executor_, read_output(started), tell);
  net::Companion end(executor_, wait_for_end(started), tell);
  std::optional<EngineError> refused;
  std::exception_ptr lost;
  try {
    if (!started) {
      while (listening_ < 2 && !output.done() && !end.done()) co_await change();
      for (const auto* listener : {&output, &end})
        if (listener->error()) std::rethrow_exception(listener->error());
      co_await engine_.start_container(id_);
    }
  } catch (const EngineError& error) { refused = error; } catch (...) {
    lost = std::current_exception();
  }
  if (refused || lost)
    connections_.stop(StopLevel::immediate);
  else
    co_await watch(output, end);
  co_await end.join();
  if (end.error()) connections_.stop(StopLevel::immediate);
  co_await drain(output);

  if (refused) {
    result.failure = start_failure(*refused, attempt_, image);
    co_return result;
  }
  if (lost) std::rethrow_exception(lost);
  if (end.error()) std::rethrow_exception(end.error());
  result.exit_code = exit_code_;
  if (output.error()) std::rethrow_exception(output.error());
  if (stopping_ != StopLevel::none) {
    result.failure = cancelled();
  } else {
    const auto how = co_await look_at_end();
    result.failure = failure_of(how, attempt_, image);
  }
  co_return result;
}

/// What the engine has under the attempt's name, if it is this attempt's: made by a driver that is dead.
struct Found {
  std::string id;
  bool started = false;
  bool usable = false;  ///< It writes to the folder that this attempt reads; else it is in the way.
};

Task<Found> find_own(EngineApi& engine, const Attempt& attempt, const ContainerPlace& place) {
  const auto name = container_name(attempt);
  const auto container = co_await engine.call("GET", "/containers/" + name + "/json");
  const auto labels = container.value(json::json_pointer("/Config/Labels"), json::object());
  for (const auto& [label, value] : container_labels(attempt, place))
    if (labels.value(label, std::string()) != value)
      throw EnvironmentError("cannot create the container " + name + ": there is one of that name, and it is not this step's",
                             {"`docker inspect " + name + "` shows whose it is; `docker rm -f " + name + "` removes it"});
  const auto status = container.value(json::json_pointer("/State/Status"), std::string());
  Found found{container.at("Id").get<std::string>(), status == "running" || status == "exited", false};
  for (const auto& mount : container.value("Mounts", json::array()))
    if (mount.value("Destination", std::string()) == container_layout().outputs)
      found.usable = found.started && mount.value("Source", std::string()) == attempt.outputs;
  co_return found;
}

/// The container, made anew or found.
Task<Found> obtain(EngineApi& engine, const Attempt& attempt, const ContainerPlace& place) {
  const auto name = container_name(attempt);
  const auto platform = attempt.step.settings.docker.platform.value_or("");
  for (int attempts_left = 3;; --attempts_left) {
    std::optional<EngineError> conflict;
    try {
      const auto body = container_body(attempt, place);
      Found made;
      made.id = co_await engine.create_container(name, body, platform);
      made.usable = true;
      co_return made;
    } catch (const EngineError& error) {
      if (error.status() != 409 || attempts_left == 0) throw;
      conflict = error;
    }
    Found found;
    try {
      found = co_await find_own(engine, attempt, place);
    } catch (const EngineError& error) {
      if (error.status() != 404) throw;
      continue;  // it was on its way out
    }
    if (found.usable) co_return found;
    co_await engine.remove_container(found.id);
  }
}

}  // namespace

Task<AttemptResult> run_container(docker::EngineApi& engine, const Attempt& attempt, const ContainerPlace& place, const std::string& image,
                                  Removals& removals) {
  AttemptResult result;
  if (attempt.cancel.level() != StopLevel::none) {
    result.failure = cancelled();
    co_return result;
  }
  Found container;
  std::optional<Failure> refused;
  try {
    container = co_await obtain(engine, attempt, place);
  } catch (const EngineError& error) { refused = start_failure(error, attempt, image); }
  if (refused) {
    result.failure = std::move(refused);
    co_return result;
  }
  std::exception_ptr error;
  const auto executor = co_await asio::this_coro::executor;
  try {
    ContainerRun run(engine, attempt, container.id, executor);
    result = co_await run.run(container.started, image);
  } catch (...) { error = std::current_exception(); }
  removals.begin(executor, container.id);
  if (error) {
    co_await removals.settle();  // it may be running still
    std::rethrow_exception(error);
  }
  co_return result;
}

}  // namespace pipeline

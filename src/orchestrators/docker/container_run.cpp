#include "orchestrators/docker/container_run.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "orchestrators/containers/container_end.hpp"
#include "orchestrators/docker/container_session.hpp"
#include "orchestrators/docker/file_copy.hpp"
#include "orchestrators/docker/own_container.hpp"
#include "orchestrators/docker/user_entry.hpp"
#include "orchestrators/preflight.hpp"
#include "orchestrators/stopped.hpp"

namespace pipeline::orchestrators::docker_engine {
namespace {

using docker::EngineError;

using Clock = std::chrono::steady_clock;

/// Keeps a container's output in memory.
class KeptOutput : public LogSink {
 public:
  void write(Stream, std::string_view bytes) override { text += bytes; }
  std::string text;
};

struct Outcome {
  AttemptResult result;
  /// The engine's message if it refused to create or start a container.
  std::optional<std::string> refusal;
};

/// Returns the outcome of a container that the engine has refused to create.
Outcome refused_outcome(const RunContext& context, const EngineError& error) {
  Outcome outcome;
  outcome.refusal = error.what();
  outcome.result.failure = containers::start_failure(error, context.attempt, context.image);
  return outcome;
}

/// Returns true if an output is missing: the attempt fails then, although its exit code is 0.
bool lacks_output(const Attempt& attempt) {
  return std::ranges::any_of(attempt.output_names, [&](const AttemptOutput& output) {
    std::error_code error;
    return !std::filesystem::exists(
        std::filesystem::symlink_status(attempt.outputs / output.file_name, error));
  });
}

/// Runs an existing container and begins its removal.
/// @param log, gate see ContainerSession
async::Task<Outcome> run_and_remove(const RunContext& context, const ContainerOptions& options,
                                    OwnContainer container, LogSink& log, PreflightLog* gate) {
  auto& engine = context.engine;
  const auto& attempt = context.attempt;
  Outcome outcome;
  bool is_run = false;
  std::exception_ptr error;
  const auto executor = co_await asio::this_coro::executor;
  const auto begun = Clock::now();
  std::chrono::nanoseconds moved_in{};
  try {
    if (container.copies && !container.started) {
      try {
        co_await copy_in(engine, attempt, container.id, options.init);
        if (!options.passwd.empty())
          co_await copy_passwd(engine, options, container.id, attempt.io.cancel);
      } catch (const EngineError& refused) {
        outcome.result.failure = containers::start_failure(refused, attempt, context.image);
      }
      moved_in = Clock::now() - begun;
    }
    if (!outcome.result.failure) {
      ContainerSession session(engine, attempt, container.id, executor, log, gate);
      outcome.result = co_await session.run(container.started, context.image);
      outcome.refusal = session.refusal();
      is_run = !outcome.refusal;
    }
    outcome.result.moved_in = moved_in;
    const auto ended = Clock::now();
    if (container.copies && is_run) {
      if (!outcome.result.failure) co_await copy_out(engine, attempt, container.id);
      if (outcome.result.failure || lacks_output(attempt))
        co_await copy_rest(engine, attempt, container.id, outcome.result.failure.has_value());
      outcome.result.moved_out = Clock::now() - ended;
    }
  } catch (const net::TransportError&) {
    error = std::current_exception();
    if (attempt.io.cancel.level() != core::StopLevel::none) {  // Cancelled while files were copied.
      error = nullptr;
      outcome.result.failure = was_stopped();
    }
  } catch (...) {
    error = std::current_exception();
  }
  context.removals.begin(executor, engine.remove_container(container.id), container.id);
  if (error) {
    co_await context.removals.settle();  // The container may still be running.
    std::rethrow_exception(error);
  }
  co_return outcome;
}

/// Runs the preflight for an image without a shell, in which nvidia-smi cannot run before the
/// command. Uses a separate container with the same configuration. The result has a failure if the
/// step must not start.
async::Task<Outcome> run_preflight(const RunContext& context, const ContainerOptions& options) {
  auto& engine = context.engine;
  const auto& attempt = context.attempt;
  Outcome outcome;
  std::optional<EngineError> refused;
  OwnContainer preflight;
  const auto name = container_name(attempt) + "-preflight";
  auto body = container_body(attempt, options);
  body["Entrypoint"] = {"nvidia-smi", "-L"};
  try {
    co_await engine.remove_container(name);  // The container of a dead driver.
    preflight.id = co_await engine.create_container(
        name, std::move(body), attempt.step.settings->docker.platform.value_or(""));
  } catch (const EngineError& error) {
    refused = error;
  }
  if (refused) co_return refused_outcome(context, *refused);
  KeptOutput smi_output;
  outcome = co_await run_and_remove(context, options, std::move(preflight), smi_output, nullptr);
  write_preflight(attempt.io.log, smi_output.text);
  if (!outcome.result.exit_code ||
      (outcome.result.failure && outcome.result.failure->kind == FailureKind::cancelled))
    co_return outcome;
  SmiReport report;
  report.code = *outcome.result.exit_code;
  report.list = std::move(smi_output.text);
  outcome.result.failure = preflight_failure(report, attempt.gpus, GpuVisibility::its_own);
  outcome.result.exit_code.reset();
  co_return outcome;
}

/// Runs the attempt in a container, after the preflight if the attempt has one. The outcome has the
/// engine's refusal if the engine did not create or start the container.
async::Task<Outcome> try_container(const RunContext& context, ContainerOptions& options) {
  auto& engine = context.engine;
  const auto& attempt = context.attempt;
  OwnContainer container;
  std::optional<EngineError> refused;
  try {
    container = co_await obtain_container(engine, attempt, options);
    if (container.gated && !container.started && !attempt.step.command.shell) {
      const bool has_shell = co_await engine.has_file(container.id, "/bin/sh");
      if (!has_shell) {
        co_await engine.remove_container(container.id);
        auto ungated = options;
        ungated.gate = false;
        auto preflight = co_await run_preflight(context, ungated);
        if (preflight.refusal || preflight.result.failure) co_return preflight;
        container = co_await obtain_container(engine, attempt, ungated);
      }
    }
  } catch (const EngineError& error) {
    refused = error;
  }
  if (refused) co_return refused_outcome(context, *refused);
  PreflightLog gate(attempt.io.log);
  LogSink& log = container.gated ? static_cast<LogSink&>(gate) : attempt.io.log;
  co_return co_await run_and_remove(context, options, container, log,
                                    container.gated ? &gate : nullptr);
}

}  // namespace

async::Task<AttemptResult> run_container(const RunContext& context, ContainerOptions& options) {
  const auto& attempt = context.attempt;
  for (;;) {
    if (attempt.io.cancel.level() != core::StopLevel::none) {
      AttemptResult result;
      result.failure = was_stopped();
      co_return result;
    }
    const auto method = replaceable_gpu_method(attempt, options);
    auto outcome = co_await try_container(context, options);
    if (!method || !outcome.refusal || !options.gpu_access->try_next(*method, *outcome.refusal))
      co_return outcome.result;
    co_await context.removals.settle();  // The next container has the same name.
  }
}

}  // namespace pipeline::orchestrators::docker_engine

/// @file
/// Runs a container that has been created, from its start to its end.
#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string>

#include "async/change.hpp"
#include "async/joinable_task.hpp"
#include "async/timeout.hpp"
#include "core/tail_buffer.hpp"
#include "docker/engine_api.hpp"
#include "orchestrators/orchestrator.hpp"
#include "orchestrators/preflight.hpp"
#include "orchestrators/usage/memory_kills.hpp"

namespace pipeline::orchestrators::docker_engine {

/// Starts the container or joins it, passes on its output, stops it on request, and returns how it
/// ended. The container is created and removed elsewhere.
class ContainerSession {
 public:
  /// @param log  receives the container's output
  /// @param gate the same sink if the container's command is behind the preflight's gate, else null
  ContainerSession(docker::EngineApi& engine, const Attempt& attempt, std::string id,
                   asio::any_io_executor executor, LogSink& log, PreflightLog* gate)
      : engine_(engine),
        attempt_(attempt),
        id_(std::move(id)),
        executor_(std::move(executor)),
        log_(log),
        gate_(gate),
        changed_(executor_),
        preflight_timeout_(executor_, [this] {
          if (gate_->is_open()) return;
          hangs_ = true;
          changed_.tell();
        }) {}

  /// @param started the container has been started, perhaps has ended already, and is joined
  /// @param image   the image's reference, for messages
  async::Task<AttemptResult> run(bool started, const std::string& image);
  /// Returns the engine's message if it refused to start the container.
  const std::optional<std::string>& refusal() const { return refusal_; }

 private:
  async::Task<> read_output(bool started);
  async::Task<> await_end(bool started);
  async::Task<> ignoring_errors(async::Task<> task);
  async::Task<> start_attached(const async::JoinableTask& output, const async::JoinableTask& end);
  async::Task<> watch(async::JoinableTask& output, async::JoinableTask& end);
  async::Task<> measure();
  async::Task<> measure_gpus();
  async::Task<> measure_by_engine();
  async::Task<> measure_remotely();
  async::Task<bool> killed_for_memory();
  async::Task<std::optional<Failure>> find_failure(const std::string& image);
  /// Numbers of bytes, of stdout and of stderr.
  using Position = std::array<std::uint64_t, 2>;
  static constexpr std::size_t output_tail = 8192;  ///< Bytes.
  void take_output(bool is_stderr, std::string_view bytes, Position& position);
  async::Task<> attach();
  async::Task<bool> look_up(bool& next_exit);
  async::Task<bool> ended_within(std::chrono::milliseconds time);
  void warn_of_missing_output(const std::string& why);
  /// Notes that the engine has opened a stream. @param flag attached_ or waiting_
  void note_open_stream(bool& flag) {
    flag = true;
    changed_.tell();
  }

  docker::EngineApi& engine_;
  const Attempt& attempt_;
  const std::string id_;
  asio::any_io_executor executor_;
  LogSink& log_;
  PreflightLog* gate_;     ///< Set if the command is behind a gate; then the same object as log_.
  async::Change changed_;  ///< Notified when a member below changes.
  async::Timeout preflight_timeout_;
  core::CancelSource connections_;
  std::optional<std::string> refusal_;
  bool attached_ = false, waiting_ = false;  ///< The engine's streams were opened before the start.
  int exit_code_ = 0;
  bool has_ended_ = false;
  bool is_oom_killed_ = false;  ///< The engine reported this at the container's end.
  core::CancelSource ended_;    ///< Stopped when the container has ended.
  bool was_cut_ = false;        ///< The connection that waits for the end was lost meanwhile.
  bool output_was_cut_ = false;
  std::optional<Failure> lost_;  ///< Why there is no exit code, or why it does not count.
  Position seen_{};              ///< Numbers of bytes that were passed on.
  std::string first_errors_;
  core::TailBuffer last_output_{output_tail};
  bool hangs_ = false;        ///< The preflight's nvidia-smi did not end in time.
  std::size_t received_ = 0;  ///< Bytes of output, repeated ones included.
  core::StopLevel stopping_ = core::StopLevel::none;
  const usage::MemoryKills kills_;
  core::Usage usage_;
  std::optional<std::chrono::steady_clock::time_point> began_;
  std::optional<std::chrono::steady_clock::time_point> gone_;  ///< When the first process ended.
};

}  // namespace pipeline::orchestrators::docker_engine

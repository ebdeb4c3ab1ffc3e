/// @file
/// Runs a service of an attempt, from its start to its end.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/lines.hpp"
#include "core/tail_buffer.hpp"
#include "docker/engine_api.hpp"
#include "orchestrators/docker/container_spec.hpp"

namespace pipeline::orchestrators::docker_engine {

class ServiceRun {
 public:
  /// @param on_change called when is_ready() or failure() has changed
  ServiceRun(docker::EngineApi& engine, const Attempt& attempt, const ContainerOptions& options,
             std::string name, std::string image, std::function<void()> on_change)
      : engine_(engine),
        attempt_(attempt),
        options_(options),
        name_(std::move(name)),
        spec_(attempt.step.services.at(name_)),
        image_(std::move(image)),
        on_change_(std::move(on_change)) {}

  /// Starts the service's container, and returns when that has ended, has failed to become ready,
  /// or stop() was called. The container is removed elsewhere.
  async::Task<> run();
  void stop() { connections_.stop(core::StopLevel::immediate); }

  bool is_ready() const { return is_ready_; }
  /// Returns why the step cannot start or cannot continue.
  const std::optional<Failure>& failure() const { return failure_; }

 private:
  async::Task<> start();
  async::Task<std::string> create();
  async::Task<> pass_output();
  async::Task<> await_readiness();
  async::Task<int> run_check(std::vector<std::string> check, core::CancelSource& cancel);
  async::Task<> await_end();
  async::Task<docker::ContainerState> state();
  void take_output(bool is_stderr, std::string_view bytes);
  void take_line(bool is_stderr, std::string_view line);
  void fail(FailureKind kind, const std::string& what, std::vector<std::string> hints);
  /// Returns `its service 'db' (postgres:16) `.
  std::string title() const { return "its service '" + name_ + "' (" + spec_.image + ") "; }

  docker::EngineApi& engine_;
  const Attempt& attempt_;
  const ContainerOptions& options_;
  const std::string name_;
  const ServiceSpec& spec_;
  const std::string image_;
  std::function<void()> on_change_;
  std::string id_;
  core::CancelSource connections_;  ///< Stopped at the end.
  core::Lines lines_[2]{core::Lines(max_line), core::Lines(max_line)};
  core::TailBuffer last_output_{output_tail};
  std::string why_not_ready_, check_output_;  ///< Set by the last check.
  docker::ContainerState end_;                ///< The container's state when it was last looked up.
  bool is_ready_ = false;
  bool is_late_ = false;  ///< The service was not ready within its timeout.
  std::optional<Failure> failure_;

  static constexpr std::size_t max_line = 16384, output_tail = 2048;  ///< Bytes.
};

}  // namespace pipeline::orchestrators::docker_engine

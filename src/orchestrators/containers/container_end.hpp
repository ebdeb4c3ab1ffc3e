/// @file
/// Explains how a container ended, in terms that help the step's author. The functions are pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "docker/engine_api.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators::containers {

struct ContainerEnd {
  int exit_code = 0;
  /// The kernel killed a process of the container for lack of memory, perhaps another one than the
  /// container's first process.
  bool oom_killed = false;
  std::string first_errors;  ///< The beginning of the container's stderr.
  std::string last_output;   ///< The end of the container's output, both streams.
};

/// Returns the failure for a container that ran; nothing for exit code 0.
/// @param image the image's reference, for messages
std::optional<Failure> failure_of(const ContainerEnd& end, const AttemptSpec& attempt,
                                  const std::string& image);
/// Returns the failure if `text` says that the program could not be executed; nothing otherwise.
/// @param text message of docker's init (tini), Podman's (catatonit), the runtime or a system call
std::optional<Failure> not_executed(std::string_view text, const AttemptSpec& attempt,
                                    const std::string& image);
/// Returns the failure for an engine's refusal to create or start the container.
Failure start_failure(const docker::EngineError& error, const AttemptSpec& attempt,
                      const std::string& image);
/// Returns the failure for a container that the engine stopped or that ended while the engine was
/// restarted: its exit code does not describe the step.
Failure ended_with_engine(int exit_code);
/// Returns the failure for a container that another program removed while the engine was lost.
Failure was_removed(const std::string& container);
/// Returns the failure for an engine that no longer responds.
Failure engine_lost(const core::EnvironmentError& error);

}  // namespace pipeline::orchestrators::containers

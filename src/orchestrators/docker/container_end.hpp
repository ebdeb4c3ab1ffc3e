/// @file
/// What became of a container, in words that its step's author can act on. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "docker/engine_api.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators {

struct ContainerEnd {
  int exit_code = 0;
  bool oom_killed =
      false;  ///< The kernel killed something in it for memory; not necessarily what ended it.
  std::string first_errors;  ///< The beginning of what it wrote to stderr.
  std::string last_output;   ///< The end of what it wrote, both streams.
};

/// Nothing for an exit code of 0.
std::optional<Failure> failure_of(const ContainerEnd& end, const Attempt& attempt,
                                  const std::string& image);
/// The program could not be executed: by the text of docker's init (tini), Podman's (catatonit),
/// the runtime or a system call.
std::optional<Failure> not_executed(std::string_view text, const Attempt& attempt,
                                    const std::string& image);
/// The engine would not make or start the container.
Failure start_failure(const docker::EngineError& error, const Attempt& attempt,
                      const std::string& image);
/// The engine stopped the container, or was restarted since: its exit code says nothing about the
/// step.
Failure ended_with_engine(int exit_code);
/// Another program removed the container while the engine was lost.
Failure was_removed(const std::string& container);
/// The engine does not answer any more.
Failure engine_lost(const core::EnvironmentError& error);

}  // namespace pipeline::orchestrators

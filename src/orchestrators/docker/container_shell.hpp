/// @file
/// A container on the user's terminal.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "docker/engine_api.hpp"
#include "orchestrators/docker/container_spec.hpp"
#include "orchestrators/usage/group_usage.hpp"

namespace pipeline::orchestrators::docker_engine {

/// Runs Attempt::shell in a container as the attempt's, connected with the standard streams of this
/// process, and removes it. Returns the exit code, or the failure to start.
/// @param image name of the image, for messages
async::Task<AttemptResult> run_shell(docker::EngineApi& engine, const Attempt& attempt,
                                     ContainerOptions& place, std::string image);

/// The activity of containers whose processes are this machine's. Callers ask often, and a busy
/// engine takes seconds to answer, so each container is looked up once.
class ContainerActivity {
 public:
  /// Returns the groups of the attempt's running container. They do not exist if there is none, or
  /// if it is another machine's.
  async::Task<usage::GroupFolders> group_of(docker::EngineApi& engine, const Attempt& attempt);
  /// As AttemptRunner::activity_of().
  async::Task<std::optional<core::Activity>> of(docker::EngineApi& engine, const Attempt& attempt);

 private:
  std::map<std::string, usage::GroupFolders> groups_;  ///< By the containers' names.
};

/// Joins a running process as AttemptRunner::join() does.
async::Task<std::optional<int>> join_container(docker::EngineApi& engine, RunningProcess process,
                                               ShellRequest shell);
/// As AttemptRunner::ask(); at most 64 KiB, and nothing if the words do not end in time.
async::Task<std::optional<std::string>> ask_container(docker::EngineApi& engine,
                                                      RunningProcess process,
                                                      std::vector<std::string> words);

}  // namespace pipeline::orchestrators::docker_engine

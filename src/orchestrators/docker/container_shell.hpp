/// @file
/// Shells in containers, and the activity of running containers.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "docker/engine_api.hpp"
#include "orchestrators/docker/container_spec.hpp"
#include "orchestrators/usage/group_usage.hpp"

namespace pipeline::orchestrators::docker_engine {

/// Runs Attempt::shell in a new container with the attempt's configuration, connected with the
/// standard streams of this process, and removes the container. Returns the exit code, or the
/// failure to start.
/// @param image name of the image, for messages
async::Task<AttemptResult> run_shell(docker::EngineApi& engine, const Attempt& attempt,
                                     ContainerOptions& options, std::string image);

/// The activity of containers that run on this machine. Callers ask often, and a busy engine takes
/// seconds to answer, so each container is looked up once.
class ContainerActivity {
 public:
  /// Returns the control group of the attempt's running container. GroupFolders::exists() is false
  /// if there is no such container, or if it runs on another machine.
  async::Task<usage::GroupFolders> group_of(docker::EngineApi& engine, const Attempt& attempt);
  /// Returns the activity as AttemptRunner::activity_of() does.
  async::Task<std::optional<core::Activity>> activity_of(docker::EngineApi& engine,
                                                         const Attempt& attempt);
  void forget(const Attempt& attempt);  ///< Forgets the container of an attempt that has ended.

 private:
  std::map<std::string, usage::GroupFolders> groups_;  ///< By the containers' names.
};

/// Joins a running process as AttemptRunner::join() does.
async::Task<std::optional<int>> join_container(docker::EngineApi& engine, RunningProcess process,
                                               ShellRequest shell);
/// Runs the words as AttemptRunner::ask() does. Returns at most 64 KiB of output; nothing if the
/// words do not end within ten seconds.
async::Task<std::optional<std::string>> ask_container(docker::EngineApi& engine,
                                                      RunningProcess process,
                                                      std::vector<std::string> words);

}  // namespace pipeline::orchestrators::docker_engine

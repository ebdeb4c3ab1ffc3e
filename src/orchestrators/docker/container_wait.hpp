/// @file
/// Waits for a container's end, across interruptions of the engine's connection.
#pragma once

#include <functional>
#include <string>

#include "docker/engine_api.hpp"

namespace pipeline::orchestrators::docker_engine {

struct ContainerWait {
  std::string id;
  core::CancelSource& cancel;  ///< Ends the wait; the error of the connection is thrown then.
  bool next_exit = false;      ///< The container has not been started yet.
  /// Called when the engine's answer has begun.
  std::function<void()> on_listening = {};
  /// Looks the container up, after each answer or interruption. Returns true if it has ended.
  /// @param next_exit set to true if the container has not been started yet
  /// @param was_cut the connection was lost since the last call
  std::function<async::Task<bool>(bool& next_exit, bool was_cut)> has_ended;
};

/// Waits until `has_ended` returns true. Throws the error of a connection that stays lost.
async::Task<> wait_for_end(docker::EngineApi& engine, ContainerWait wait);

}  // namespace pipeline::orchestrators::docker_engine

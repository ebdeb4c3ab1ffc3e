/// @file
/// Containers that have ended, on their way out.
#pragma once

#include <list>
#include <string>

#include "docker/engine_api.hpp"
#include "net/companion.hpp"

namespace pipeline {

/// Removes containers beside what else is done: the engine takes some tens of milliseconds for one, which no step that comes next has to wait for.
class Removals {
 public:
  explicit Removals(docker::EngineApi& engine) : engine_(engine) {}

  /// Begins; a removal that fails is a warning, and the next run's.
  void begin(const asio::any_io_executor& executor, std::string id);
  /// Until all that have begun are done; to be awaited before this object goes.
  Task<> settle();

 private:
  Task<> remove(std::string id);

  docker::EngineApi& engine_;
  std::list<net::Companion> running_;
};

}  // namespace pipeline

/// @file
/// Containers that have ended, on their way out.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "docker/engine_api.hpp"
#include "net/companion.hpp"

namespace pipeline {

/// Removes containers beside what else is done: the engine takes some tens of milliseconds for one, which no step that comes next has to wait for.
class Removals {
 public:
  explicit Removals(docker::EngineApi& engine) : engine_(engine) {}

  /// Begins; a removal that fails is a warning, and the next run's.
  void begin(const asio::any_io_executor& executor, std::string id);
  /// Until all that have begun are done, also where several await it at once; to be awaited before this object goes.
  Task<> settle();

 private:
  Task<> remove(std::string id);

  docker::EngineApi& engine_;
  std::vector<std::shared_ptr<net::Companion>> running_;  ///< Shared with those who settle: others may begin and forget meanwhile.
};

}  // namespace pipeline

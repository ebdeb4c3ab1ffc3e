/// @file
/// The objects that every part of a run uses.
#pragma once

#include "async/task_group.hpp"
#include "core/cancel.hpp"
#include "engine/options.hpp"
#include "engine/services.hpp"

namespace pipeline::engine {

/// References to objects that outlive all parts of the run.
struct RunContext {
  const Services& services;
  const EngineOptions& options;
  EventSink& events;
  core::CancelSource& user_stop;  ///< Stopped by the user.
  asio::thread_pool& pool;        ///< For work that would block the event loop.
  asio::any_io_executor executor;
  /// Coroutines that refer to parts of the run; they end before those parts.
  async::TaskGroup& tasks;
};

}  // namespace pipeline::engine

/// @file
/// Saves a run to its replica while the run continues.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "async/gate.hpp"
#include "async/joinable_task.hpp"
#include "remote_driver/run_replica.hpp"

namespace pipeline::remote_driver {

/// Runs from construction until end(), which must be awaited.
class RunUploader {
 public:
  /// @param replica one that has taken the run over
  /// @param before_write called before each save; may end the process
  RunUploader(
      asio::io_context& loop, RunReplica& replica, store::RunStore& store,
      std::function<void()> before_write = [] {})
      : replica_(replica),
        store_(store),
        before_write_(std::move(before_write)),
        executor_(loop.get_executor()),
        pause_(loop),
        task_(executor_, save_repeatedly()) {}

  /// Returns when all current records are saved, or the save has failed. A failure is logged and
  /// retried with the next save.
  async::Task<> save_now();
  /// Ends the repeated saves, and saves a last time. Throws EnvironmentError on failure.
  async::Task<> end();

 private:
  async::Task<> save_repeatedly();

  RunReplica& replica_;
  store::RunStore& store_;
  std::function<void()> before_write_;
  asio::any_io_executor executor_;
  asio::steady_timer pause_;
  bool is_wanted_ = false, has_ended_ = false;
  /// Opens at the end of the next save. Shared with the coroutines in save_now(), which may resume
  /// after another save has begun.
  std::shared_ptr<async::Gate> next_ = std::make_shared<async::Gate>(executor_);
  async::JoinableTask task_;  ///< Declared last, because it uses all other members.
};

}  // namespace pipeline::remote_driver

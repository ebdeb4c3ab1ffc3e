/// @file
/// Saves a run in its bucket as it goes on.
#pragma once

#include <chrono>

#include "async/gate.hpp"
#include "async/joinable_task.hpp"
#include "detached/run_replica.hpp"

namespace pipeline::detached {

/// From its construction until end(), which is to be waited for.
class RunUploader {
 public:
  /// @param bucket has taken the run over
  /// @param before_write called before each save; may end the process
  RunUploader(
      asio::io_context& loop, RunReplica& bucket, store::RunStore& runs,
      std::function<void()> before_write = [] {})
      : bucket_(bucket),
        runs_(runs),
        before_write_(std::move(before_write)),
        executor_(loop.get_executor()),
        pause_(loop),
        going_(executor_, go()) {}

  /// Returns when all that is recorded now is saved; or cannot be, which is logged, and tried again
  /// with what is recorded later.
  async::Task<> keep();
  /// Saves all of it. Throws EnvironmentError if that cannot be done.
  async::Task<> end();

 private:
  async::Task<> go();

  RunReplica& bucket_;
  store::RunStore& runs_;
  std::function<void()> before_write_;
  asio::any_io_executor executor_;
  asio::steady_timer pause_;
  bool is_wanted_ = false, has_ended_ = false;
  std::shared_ptr<async::Gate> next_ =
      std::make_shared<async::Gate>(executor_);  ///< The end of a save that has not begun.
  async::JoinableTask going_;                    ///< Last: it uses all of them.
};

}  // namespace pipeline::detached

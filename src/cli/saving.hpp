/// @file
/// Saves a run in its bucket as it goes on.
#pragma once

#include <chrono>

#include "cli/run_in_bucket.hpp"
#include "net/companion.hpp"
#include "net/event.hpp"

namespace pipeline::cli {

/// From its construction until end(), which is to be waited for.
class Saving {
 public:
  /// @param bucket has taken the run over
  Saving(asio::io_context& loop, RunInBucket& bucket, store::RunStore& runs)
      : bucket_(bucket), runs_(runs), executor_(loop.get_executor()), pause_(loop), going_(executor_, go()) {}

  /// Returns when all that is recorded now is saved; or cannot be, which is logged, and tried again with what is recorded later.
  Task<> keep();
  /// Saves all of it. Throws EnvironmentError if that cannot be done.
  Task<> end();

 private:
  Task<> go();

  RunInBucket& bucket_;
  store::RunStore& runs_;
  asio::any_io_executor executor_;
  asio::steady_timer pause_;
  bool is_wanted_ = false, has_ended_ = false;
  std::shared_ptr<net::Event> next_ = std::make_shared<net::Event>(executor_);  ///< The end of a save that has not begun.
  net::Companion going_;                                                        ///< Last: it uses all of them.
};

}  // namespace pipeline::cli

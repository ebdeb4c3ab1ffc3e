/// @file
/// What attempts have left and nobody needs, on its way out.
#pragma once

#include <memory>
#include <vector>

#include "async/joinable_task.hpp"

namespace pipeline::orchestrators {

/// Removes containers or Jobs beside what else is done: that takes some tens of milliseconds each,
/// which no step that comes next has to wait for.
class Removals {
 public:
  /// Begins; a removal that fails is a warning, and the next run's.
  void begin(const asio::any_io_executor& executor, async::Task<> removal);
  /// Until all that have begun are done, also where several await it at once; to be awaited before
  /// this object goes.
  async::Task<> settle();

 private:
  std::vector<std::shared_ptr<async::JoinableTask>>
      running_;  ///< Shared with those who settle: others may begin and forget meanwhile.
};

}  // namespace pipeline::orchestrators

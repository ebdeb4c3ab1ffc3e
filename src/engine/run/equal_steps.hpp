/// @file
/// Steps with the same key, of one run or of several: one of them runs, and the others wait for its
/// result.
#pragma once

#include <memory>
#include <string>

#include "async/task.hpp"
#include "engine/run_context.hpp"
#include "store/state_lock.hpp"

namespace pipeline::engine {

class EqualSteps {
 public:
  explicit EqualSteps(const RunContext& context)
      : context_(context),
        locks_(std::make_shared<store::KeyLocks>(context.services.store.folder())) {}

  /// Waits until no other step makes the result of this key, or `stop` is stopped.
  /// @param has_waited set to true if another step was making the result
  /// @return the lock of the key; while it lives, no other step makes the result
  async::Task<std::shared_ptr<const void>> acquire(const StepSpec& step, const std::string& key,
                                                   core::CancelSource& stop, bool& has_waited);

 private:
  std::string owner_of(const std::string& key) const;

  const RunContext& context_;
  const std::shared_ptr<store::KeyLocks> locks_;  ///< Shared with the objects from acquire().
};

}  // namespace pipeline::engine

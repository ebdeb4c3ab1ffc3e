/// @file
/// Removes what attempts have left, in the background.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "async/joinable_task.hpp"

namespace pipeline::orchestrators {

/// Removes containers or Jobs concurrently with other work. A removal takes some tens of
/// milliseconds, for which later steps do not wait.
class Removals {
 public:
  /// Begins a removal. If it fails, logs a warning that names the command to remove the object.
  /// @param name added to left() if the removal fails; empty: nothing is added
  void begin(const asio::any_io_executor& executor, async::Task<> removal, std::string name = {});
  /// Names of the objects that could not be removed.
  const std::set<std::string>& left() const { return left_; }
  /// Removes a name from left(), because the object has been removed after all.
  void forget_left(const std::string& name) { left_.erase(name); }
  /// Waits until all removals that have begun are done; several coroutines may await it. Must be
  /// awaited before this object is destroyed.
  async::Task<> settle();

 private:
  /// Shared with the coroutines in settle(), because removals begin and end meanwhile.
  std::vector<std::shared_ptr<async::JoinableTask>> running_;
  std::set<std::string> left_;
};

}  // namespace pipeline::orchestrators

/// @file
/// Identities of processes that are unique despite the reuse of process numbers.
#pragma once

#include <cstdint>
#include <string>

namespace pipeline::store {

struct ProcessId {
  std::int64_t pid = 0;
  std::string started;  ///< Boot id, PID namespace, and start time in ticks.
  static ProcessId self();
  /// Returns true if the process exists. False is meaningful only if is_of_this_namespace().
  bool is_alive() const;
  /// Returns true for a process of this boot and of this process's PID namespace.
  bool is_of_this_namespace() const;
  bool is_of_this_boot() const;
};

}  // namespace pipeline::store

/// @file
/// Processes told apart for ever: process numbers are used again.
#pragma once

#include <cstdint>
#include <string>

namespace pipeline::store {

/// Identity of a process that outlives pid reuse.
struct ProcessId {
  std::int64_t pid = 0;
  std::string started;  ///< Boot id, namespace of process identifiers, and start time in ticks.
  static ProcessId self();
  /// True if there is such a process here. False says nothing unless is_of_this_namespace().
  bool alive() const;
  /// True if it was started since this machine has booted, and process identifiers mean there what
  /// they mean here.
  bool is_of_this_namespace() const;
  bool is_of_this_boot() const;
};

}  // namespace pipeline::store

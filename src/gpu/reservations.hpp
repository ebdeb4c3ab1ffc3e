/// @file
/// The reservations of the machine's GPUs at one moment, for people to see.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gpu/choose.hpp"
#include "gpu/lock_folder.hpp"

namespace pipeline::gpu {

struct Reservations {
  std::map<std::string, HolderInfo> holders;  ///< Keyed by the units' UUIDs.
  std::vector<LockEntry> queue;
};

/// Returns the holders of these units and the waiting requests, of all users; nothing is reserved.
/// Throws EnvironmentError if another program holds the lock folder for two seconds.
Reservations read_reservations(const std::vector<Unit>& units);

}  // namespace pipeline::gpu

/// @file
/// Decides which request gets GPUs next: first come, first served, except that a later request may
/// take devices that an earlier request cannot use yet, a bounded number of times. Pure: every
/// driver on the machine computes the same result from the same state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pipeline::gpu {

/// A step's request: `count` of the `candidates`, all at once.
struct Demand {
  unsigned count = 0;                   ///< 0: none; the step starts at once.
  std::vector<std::string> candidates;  ///< UUIDs, the preferred ones first.
  bool idle = false;                    ///< Only devices that no process occupies.
  /// Number of devices that each node needs, all of them on one machine. 0: there is only one
  /// machine.
  unsigned each = 0;
  bool operator==(const Demand&) const = default;
};

/// A request in the queue.
struct Waiting {
  std::uint64_t number = 0;  ///< Sequence number of the request, unique on the machine.
  Demand demand;
  unsigned overtaken = 0;  ///< How often a later request took GPUs that this one could have used.
  bool paused = false;  ///< The request's driver has no free job slot, so the step could not start.
                        ///< Other requests go first, and this does not count as overtaking.
};

/// The current state of a GPU or MIG slice.
struct DeviceState {
  std::string uuid;
  bool held = false;      ///< Reserved by a step, or by processes that a step left behind.
  bool occupied = false;  ///< Used by a process, of pipe or another program.
  bool blocked = false;   ///< Occupied and in exclusive mode, so no other process can use it.
  unsigned machine = 0;   ///< Number of the device's machine.
};

/// A reservation that can be made now.
struct Grant {
  std::size_t index;               ///< Index of the request in the queue.
  std::vector<std::string> uuids;  ///< The devices that it gets.
};

/// After this many overtakes, free GPUs are kept for a request until its demand is satisfied.
constexpr unsigned max_overtakes = 4;

/// Returns the reservations that can be made now. `waiting` is in the order of arrival.
std::vector<Grant> grants(const std::vector<Waiting>& waiting,
                          const std::vector<DeviceState>& devices);

/// Increments `overtaken` of the requests before `taken` that could have used its devices and are
/// not granted any themselves. Called once the devices of `taken` are reserved.
/// @param granted what grants() has returned
void count_overtaking(std::vector<Waiting>& waiting, const std::vector<Grant>& granted,
                      const Grant& taken);

}  // namespace pipeline::gpu

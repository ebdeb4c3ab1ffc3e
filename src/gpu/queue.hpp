/// @file
/// Who gets GPUs next: first come, first served, where a later request may take what an earlier one
/// cannot use yet, a bounded number of times. Pure: every driver on the machine computes the same
/// from the same state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pipeline::gpu {

/// What a step wants: `count` of the `candidates`, all at once.
struct Demand {
  unsigned count = 0;                   ///< 0: none; the step goes on at once.
  std::vector<std::string> candidates;  ///< UUIDs, the preferred first.
  bool idle = false;                    ///< Only what no process occupies.
  bool operator==(const Demand&) const = default;
};

struct Waiting {
  std::uint64_t number = 0;  ///< Of its arrival, on the whole machine.
  Demand demand;
  unsigned overtaken = 0;  ///< How often a later request took GPUs that this one could have used.
  bool paused = false;     ///< Its driver has no free job slot, so it could not start: others go
                           ///< first, and this does not count as overtaking.
};

/// A GPU or MIG slice as it is at the moment.
struct DeviceState {
  std::string uuid;
  bool held = false;      ///< By a step, or by what a step has left behind.
  bool occupied = false;  ///< By a process that may be anybody's.
  bool blocked = false;   ///< Occupied, and in exclusive mode: nobody else can use it.
};

struct Grant {
  std::size_t index;  ///< Whose: its place in `waiting`.
  std::vector<std::string> uuids;
};

/// After so many times free GPUs are kept for a request until it has all that it wants.
constexpr unsigned max_overtakes = 4;

/// What can be handed out now. `waiting` in the order of arrival.
std::vector<Grant> grants(const std::vector<Waiting>& waiting,
                          const std::vector<DeviceState>& devices);

/// Counts for those who came earlier, and are not `granted` anything themselves, that they were
/// overtaken; to be called once `taken` has been.
void count_overtaking(std::vector<Waiting>& waiting, const std::vector<Grant>& granted,
                      const Grant& taken);

}  // namespace pipeline::gpu

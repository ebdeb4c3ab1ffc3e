#include "gpu/queue.hpp"

#include <algorithm>
#include <map>

namespace pipeline::gpu {
namespace {

/// Returns the free devices that the request can use: those that no process occupies first, then in
/// the request's own order.
std::vector<std::string> usable(const Demand& demand, const std::vector<const DeviceState*>& free) {
  std::vector<std::string> idle, occupied;
  for (const auto& uuid : demand.candidates) {
    const auto device = std::ranges::find(free, uuid, &DeviceState::uuid);
    if (device == free.end() || (demand.idle && (*device)->occupied)) continue;
    ((*device)->occupied ? occupied : idle).push_back(uuid);
  }
  idle.insert(idle.end(), occupied.begin(), occupied.end());
  return idle;
}

/// Reduces `found` to the devices that whole nodes can use, in the machines' order.
/// @param each number of devices of a node
void keep_whole_nodes(unsigned each, const std::vector<DeviceState>& devices,
                      std::vector<std::string>& found) {
  std::map<unsigned, std::vector<std::string>> by_machine;
  for (const auto& uuid : found)
    by_machine[std::ranges::find(devices, uuid, &DeviceState::uuid)->machine].push_back(uuid);
  found.clear();
  for (const auto& [machine, own] : by_machine) {
    const auto count = static_cast<std::ptrdiff_t>(own.size() / each * each);
    found.insert(found.end(), own.begin(), own.begin() + count);
  }
}

}  // namespace

std::vector<Grant> grants(const std::vector<Waiting>& waiting,
                          const std::vector<DeviceState>& devices) {
  std::vector<const DeviceState*> free;
  for (const auto& device : devices)
    if (!device.held && !device.blocked) free.push_back(&device);
  std::vector<Grant> result;
  for (std::size_t i = 0; i < waiting.size() && !free.empty(); ++i) {
    const auto& request = waiting[i];
    if (request.paused) continue;
    auto found = usable(request.demand, free);
    if (request.demand.each > 0) keep_whole_nodes(request.demand.each, devices, found);
    const bool is_enough = found.size() >= request.demand.count;
    if (!is_enough && request.overtaken < max_overtakes) continue;
    if (is_enough) found.resize(request.demand.count);
    // The devices are granted, or kept for the request until there are enough.
    std::erase_if(free, [&](const DeviceState* device) {
      return std::ranges::find(found, device->uuid) != found.end();
    });
    if (is_enough) result.push_back({i, std::move(found)});
  }
  return result;
}

void count_overtaking(std::vector<Waiting>& waiting, const std::vector<Grant>& granted,
                      const Grant& taken) {
  for (std::size_t i = 0; i < taken.index; ++i) {
    if (waiting[i].paused || std::ranges::find(granted, i, &Grant::index) != granted.end())
      continue;
    const auto& wanted = waiting[i].demand.candidates;
    if (std::ranges::any_of(taken.uuids, [&](const std::string& uuid) {
          return std::ranges::find(wanted, uuid) != wanted.end();
        }))
      ++waiting[i].overtaken;
  }
}

}  // namespace pipeline::gpu

#include "gpu/visible.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <set>

#include "core/text.hpp"

namespace pipeline::gpu {
namespace {

std::optional<unsigned> index_of(std::string_view word) {
  unsigned index = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), index);
  return error == std::errc() && end == word.data() + word.size() ? std::optional(index)
                                                                  : std::nullopt;
}

/// Returns the UUID of the device or MIG slice that the word names: by the device's index, by the
/// beginning of its UUID, or by the whole UUID of a slice. Returns nothing if the word names none,
/// or more than one.
std::optional<std::string> uuid_named(std::string_view word, const Inventory& inventory) {
  std::set<std::string> found;
  const auto index = index_of(word);
  for (const auto& device : inventory.devices) {
    if (index ? *index == device.index : !word.empty() && device.uuid.starts_with(word))
      found.insert(device.uuid);
    for (const auto& slice : device.slices)
      if (slice.uuid == word) found.insert(slice.uuid);
  }
  return found.size() == 1 ? std::optional(*found.begin()) : std::nullopt;
}

/// Returns the UUIDs that the list names, up to the first word that names nothing: CUDA ignores
/// that word and all that follow it.
std::set<std::string> uuids_named(std::string_view list, const Inventory& inventory) {
  std::set<std::string> uuids;
  for (const auto part : core::split(list, ',')) {
    const auto uuid = uuid_named(core::trimmed(part, " "), inventory);
    if (!uuid) break;
    uuids.insert(*uuid);
  }
  return uuids;
}

}  // namespace

void remove_hidden(std::string_view visible, Inventory& inventory) {
  const auto all = inventory.devices.size();
  if (all == 0) return;
  const auto shown = uuids_named(visible, inventory);
  std::erase_if(inventory.devices, [&](Device& device) {
    if (shown.contains(device.uuid)) return false;
    std::erase_if(device.slices, [&](const Slice& slice) { return !shown.contains(slice.uuid); });
    return device.slices.empty();
  });
  if (inventory.devices.size() == all) return;
  const auto left = inventory.devices.size();
  inventory.hidden_notice =
      (visible.empty() ? "CUDA_VISIBLE_DEVICES is empty, which hides "
                       : "CUDA_VISIBLE_DEVICES=" + std::string(visible) + " hides ") +
      (left == 0 ? "all of this machine's " + core::counted(all, "GPU")
                 : std::to_string(all - left) + " of this machine's " + core::counted(all, "GPU"));
}

void remove_hidden_by_environment(Inventory& inventory) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible) remove_hidden(visible, inventory);
  if (const char* step = std::getenv("PIPE_STEP_NAME"); step && !inventory.hidden_notice.empty())
    inventory.hidden_notice += std::string("; this run was started by the step '") + step +
                               "', and can use only the GPUs of that step";
}

}  // namespace pipeline::gpu

#include "gpu/visible.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <set>

#include "gpu/together.hpp"

namespace pipeline::gpu {
namespace {

std::optional<unsigned> index_of(std::string_view word) {
  unsigned index = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), index);
  return error == std::errc() && end == word.data() + word.size() ? std::optional(index)
                                                                  : std::nullopt;
}

/// Returns the UUIDs of the one device, or of its slices, that the word names; empty if it names
/// none or is ambiguous.
std::set<std::string> named(std::string_view word, const Inventory& inventory) {
  std::set<std::string> found;
  const auto index = index_of(word);
  for (const auto& device : inventory.devices) {
    if (index ? *index == device.index : !word.empty() && device.uuid.starts_with(word))
      found.insert(device.uuid);
    for (const auto& slice : device.slices)
      if (slice.uuid == word) found.insert(slice.uuid);
  }
  if (found.size() > 1) found.clear();
  return found;
}

}  // namespace

void show_only(std::string_view visible, Inventory& inventory) {
  const auto all = inventory.devices.size();
  if (all == 0) return;
  std::set<std::string> shown;
  for (auto rest = visible;;) {
    const auto comma = std::min(rest.find(','), rest.size());
    auto word = rest.substr(0, comma);
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    const auto found = named(word, inventory);
    if (found.empty()) break;
    shown.insert(found.begin(), found.end());
    if (comma == rest.size()) break;
    rest.remove_prefix(comma + 1);
  }
  std::erase_if(inventory.devices, [&](Device& device) {
    if (shown.contains(device.uuid)) return false;
    std::erase_if(device.slices, [&](const Slice& slice) { return !shown.contains(slice.uuid); });
    return device.slices.empty();
  });
  if (inventory.devices.size() == all) return;
  const auto left = inventory.devices.size();
  inventory.narrowed =
      (visible.empty() ? "CUDA_VISIBLE_DEVICES is empty, which hides "
                       : "CUDA_VISIBLE_DEVICES=" + std::string(visible) + " hides ") +
      (left == 0 ? "all of this machine's " + gpus(all)
                 : std::to_string(all - left) + " of this machine's " + gpus(all));
}

void show_only_visible(Inventory& inventory) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible) show_only(visible, inventory);
  if (const char* step = std::getenv("PIPE_STEP_NAME"); step && !inventory.narrowed.empty())
    inventory.narrowed += std::string("; this is the step '") + step + "', which has no others";
}

}  // namespace pipeline::gpu

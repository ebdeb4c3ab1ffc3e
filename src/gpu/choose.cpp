#include "gpu/choose.hpp"

#include <algorithm>
#include <set>

#include <pipeline/spec.hpp>

#include "core/joined.hpp"
#include "core/quantity.hpp"
#include "core/text.hpp"
#include "gpu/model.hpp"

namespace pipeline::gpu {
namespace {

/// Describes the requirements on each GPU: ` of class 'A100' with at least 40GiB`.
std::string conditions(const settings::GpuRequest& request) {
  std::string text;
  if (request.model) text += " of class '" + *request.model + "'";
  if (request.min_memory) text += " with at least " + core::format_bytes(*request.min_memory);
  if (request.min_capability)
    text += (request.min_memory ? " and" : " with") +
            (" compute capability " + request.min_capability->text()) + " or more";
  return text;
}

/// Returns true if the unit satisfies the request's conditions. The `model` of a request is what
/// the step has as `gpu_class`: a model, or the profile of a MIG slice.
bool meets(const settings::GpuRequest& request, const Unit& unit) {
  if (request.model && !model_matches(*request.model, unit.model) && *request.model != unit.profile)
    return false;
  if (request.min_memory && unit.memory < min_reported_memory(*request.min_memory)) return false;
  return !request.min_capability || unit.capability >= *request.min_capability;
}

/// Returns `this machine has`, or for several `the machines have`.
std::string owner_has(const Inventory& inventory) {
  return inventory.machines.empty() ? inventory.owner + " has" : "the machines have";
}

/// Returns the name of a unit on its machine.
std::string own_name(const Unit& unit) {
  return unit.slice ? "MIG device " + std::to_string(unit.index) + ":" + std::to_string(*unit.slice)
                    : "GPU " + std::to_string(unit.index);
}

/// Returns the notes of a Shortage: the usable units, and why other GPUs cannot be used.
std::vector<std::string> listed(const Inventory& inventory, const std::vector<Unit>& units) {
  std::vector<std::string> lines;
  if (!inventory.hidden_notice.empty()) lines.push_back(inventory.hidden_notice);
  for (const auto& unit : units)
    lines.push_back((unit.machine_name.empty() ? inventory.owner : unit.machine_name) + " has " +
                    unit.description());
  for (const auto& device : inventory.devices) {
    const auto name =
        "GPU " + std::to_string(device.index) +
        (inventory.machines.empty() ? "" : " of " + inventory.machines.at(device.machine));
    if (!device.trouble.empty()) lines.push_back(name + " cannot be used: " + device.trouble);
    if (device.mode == ComputeMode::prohibited)
      lines.push_back(name + " is in prohibited compute mode; to allow it: nvidia-smi -i " +
                      std::to_string(device.index) + " -c DEFAULT");
    if (device.mig && device.slices.empty())
      lines.push_back(name +
                      " is in MIG mode and has no slices; to make them: nvidia-smi mig -cgi ...");
  }
  return lines;
}

/// Returns the unit that the user names, or why there is none.
std::variant<const Unit*, Shortage> find_unit(const settings::GpuDevice& wanted,
                                              const Inventory& inventory,
                                              const std::vector<Unit>& units) {
  std::vector<const Unit*> found;
  for (const auto& unit : units) {
    const bool is_named = wanted.index ? unit.index == *wanted.index && unit.slice == wanted.mig
                                       : unit.uuid.starts_with(wanted.uuid);
    if (is_named) found.push_back(&unit);
    if (unit.uuid == wanted.uuid) return &unit;
  }
  if (found.size() == 1) return found[0];
  const auto text = wanted.text();
  const bool is_slice = wanted.mig || wanted.uuid.starts_with("MIG-");
  const std::string kind = is_slice ? "MIG device" : "GPU";
  const auto name = wanted.index ? kind + " " + text : "the " + kind + " with the UUID " + text;
  if (found.size() > 1)
    return Shortage{
        "gpu-ambiguous",
        "asks for " + text + ", which is the beginning of more than one " + kind + "'s UUID",
        {"they are: " + core::joined(found, ", ", &Unit::uuid)},
        "write more characters of the UUID"};
  const auto device = std::ranges::find_if(inventory.devices, [&](const Device& each) {
    return wanted.index ? each.index == *wanted.index
                        : !each.uuid.empty() && each.uuid.starts_with(wanted.uuid);
  });
  if (device != inventory.devices.end() && device->mig && !wanted.mig && !device->slices.empty()) {
    const auto first =
        std::to_string(device->index) + ":" + std::to_string(device->slices[0].index);
    std::vector<std::string> slices;
    for (const auto& unit : units)
      if (unit.index == device->index) slices.push_back("it has " + unit.description());
    return Shortage{"gpu-divided",
                    "asks for " + name + ", which is divided by MIG and cannot be used as a whole",
                    slices, "name a slice, as `" + first + "`"};
  }
  if (device != inventory.devices.end() && wanted.mig && !device->mig && device->trouble.empty())
    return Shortage{"gpu-unknown",
                    "asks for " + name + ", and GPU " + std::to_string(device->index) +
                        " is not divided by MIG",
                    listed(inventory, units),
                    "name the GPU as a whole, as `" + std::to_string(device->index) + "`"};
  // A slice of a divided GPU would be in `units` if it existed.
  const bool exists = device != inventory.devices.end() && !(wanted.mig && device->mig);
  const std::string reason = exists                       ? "cannot be used"
                             : inventory.machines.empty() ? inventory.owner + " does not have"
                                                          : "none of the machines has";
  return Shortage{"gpu-unknown", "asks for " + name + ", which " + reason, listed(inventory, units),
                  ""};
}

/// Returns why a machine has no unit that a step could use.
Shortage no_gpu(const Inventory& inventory) {
  if (inventory.unavailable)
    return Shortage{.code = "no-gpu",
                    .message = "asks for GPUs, and " + inventory.unavailable->reason,
                    .notes = inventory.unavailable->advice,
                    .suggestion = "",
                    .of_machine = true};
  if (inventory.devices.empty() && !inventory.hidden_notice.empty())
    return Shortage{.code = "no-gpu",
                    .message = "asks for GPUs, and " + inventory.hidden_notice,
                    .notes = {"unset CUDA_VISIBLE_DEVICES, or name GPUs in it"},
                    .suggestion = "",
                    .of_machine = true};
  return Shortage{
      .code = "no-gpu",
      .message = "asks for GPUs, and " + owner_has(inventory) + " none that can be used",
      .notes = listed(inventory, {}),
      .suggestion = "`accelerator: auto` takes GPUs only where there are some",
      .of_machine = true};
}

/// Returns the demand for all units that the request names, individually or by the number of the
/// first ones.
std::variant<Demand, Shortage> named_units(const settings::GpuRequest& request,
                                           const Inventory& inventory,
                                           const std::vector<Unit>& units) {
  auto devices = request.devices;
  const bool names_first = request.selection == settings::GpuRequest::Selection::first;
  const auto explained = [&](Shortage shortage) {
    if (names_first)
      shortage.notes.insert(shortage.notes.begin(), "`devices` is a number: it names the first " +
                                                        core::counted(request.count, "GPU"));
    return shortage;
  };
  if (names_first) {
    for (unsigned i = 0; i < request.count; ++i)
      devices.push_back({.index = i < inventory.devices.size() ? inventory.devices[i].index : i});
    if (request.count > units.size())
      return Shortage{"too-many-gpus",
                      "asks for " + core::counted(request.count, "GPU") + ", and " +
                          owner_has(inventory) + " " + std::to_string(units.size()),
                      listed(inventory, units), ""};
  }
  Demand demand{.idle = request.auto_select};
  for (const auto& wanted : devices) {
    auto found = find_unit(wanted, inventory, units);
    if (auto* shortage = std::get_if<Shortage>(&found)) return explained(std::move(*shortage));
    const auto& unit = *std::get<const Unit*>(found);
    if (!meets(request, unit))
      return explained({"no-matching-gpu",
                        "asks for GPUs" + conditions(request) + ", and names " + unit.name() +
                            ", which does not match",
                        {"it is " + unit.description()},
                        ""});
    if (std::ranges::find(demand.candidates, unit.uuid) != demand.candidates.end())
      return Shortage{"gpu-twice",
                      "names " + unit.name() + " twice, once as " + wanted.text(),
                      {"it is " + unit.description()},
                      "name it once"};
    demand.candidates.push_back(unit.uuid);
  }
  demand.count = static_cast<unsigned>(demand.candidates.size());
  return demand;
}

/// Returns the units that satisfy the request's conditions, and how many of them are needed. Slices
/// are taken only if no whole GPU satisfies the conditions, as when `gpu_class` is a MIG profile,
/// because CUDA shows a process at most one slice.
std::variant<Demand, Shortage> any_units(const settings::GpuRequest& request,
                                         const Inventory& inventory,
                                         const std::vector<Unit>& units) {
  std::vector<std::string> whole, slices;
  for (const auto& unit : units)
    if (meets(request, unit)) (unit.slice ? slices : whole).push_back(unit.uuid);
  Demand demand{.idle = request.auto_select};
  demand.candidates = whole.empty() ? slices : whole;
  demand.count = request.selection == settings::GpuRequest::Selection::all
                     ? static_cast<unsigned>(demand.candidates.size())
                     : request.count;
  if (demand.candidates.empty())
    return Shortage{
        "no-matching-gpu",
        "asks for GPUs" + conditions(request) + ", and " + owner_has(inventory) + " none",
        listed(inventory, units), ""};
  if (demand.count > demand.candidates.size())
    return Shortage{"too-many-gpus",
                    "asks for " + core::counted(demand.count, "GPU") + conditions(request) +
                        ", and " + owner_has(inventory) + " " +
                        std::to_string(demand.candidates.size()),
                    listed(inventory, units), ""};
  return demand;
}

}  // namespace

std::string Unit::name() const {
  return own_name(*this) + (machine_name.empty() ? "" : " of " + machine_name);
}

std::string Unit::description() const {
  return own_name(*this) + ": " + model + (profile.empty() ? "" : ", " + profile) + ", " +
         core::format_bytes(memory) + ", compute capability " + capability.text() + " (" + uuid +
         ")";
}

std::vector<Unit> units_of(const Inventory& inventory) {
  std::vector<Unit> units;
  for (const auto& device : inventory.devices) {
    if (!device.trouble.empty() || device.mode == ComputeMode::prohibited) continue;
    Unit unit{.uuid = device.uuid,
              .machine = device.machine,
              .index = device.index,
              .model = device.model,
              .memory = device.memory,
              .capability = device.capability,
              .mode = device.mode,
              .processes = device.processes};
    if (!inventory.machines.empty()) unit.machine_name = inventory.machines.at(device.machine);
    if (!device.mig) units.push_back(unit);
    for (const auto& slice : device.slices) {
      unit.uuid = slice.uuid;
      unit.slice = slice.index;
      unit.profile = slice.profile;
      unit.memory = slice.memory;
      unit.processes = slice.processes;
      units.push_back(unit);
    }
  }
  return units;
}

settings::GpuRequest request_of(const StepSpec& step) {
  auto request = settings::gpu_request(step.settings->resources);
  if (step.nodes) request.count *= step.nodes.count;
  return request;
}

std::variant<Demand, Shortage> demand_of(const settings::GpuRequest& request,
                                         const Inventory& inventory) {
  using Selection = settings::GpuRequest::Selection;
  if (!request.wanted()) return Demand{};
  const auto units = units_of(inventory);
  if (units.empty()) {
    if (request.if_present) return Demand{};
    return no_gpu(inventory);
  }
  if (request.selection == Selection::devices || request.selection == Selection::first)
    return named_units(request, inventory, units);
  return any_units(request, inventory, units);
}

}  // namespace pipeline::gpu

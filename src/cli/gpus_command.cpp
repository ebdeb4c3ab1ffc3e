// `pipe gpus`: the GPUs of this machine, and the steps that hold them or wait for them.
#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "core/joined.hpp"
#include "core/quantity.hpp"
#include "docker/engine_api.hpp"
#include "gpu/choose.hpp"
#include "gpu/reservations.hpp"

namespace pipeline::cli {
namespace {

using nlohmann::json;

json holder_json(const gpu::HolderInfo& holder) {
  return {{"run", holder.run},          {"step", holder.step},
          {"pid", holder.pid},          {"user", holder.user},
          {"driver_died", holder.gone}, {"since", core::format_time(holder.since)}};
}

json processes_json(const std::vector<gpu::Process>& processes) {
  auto list = json::array();
  for (const auto& process : processes)
    list.push_back({{"pid", process.pid},
                    {"name", process.name},
                    {"user", process.user},
                    {"memory", process.memory},
                    {"type", process.graphics ? "graphics" : "compute"}});
  return list;
}

json holder_json(const gpu::Reservations& reservations, const std::string& uuid) {
  const auto found = reservations.holders.find(uuid);
  return found == reservations.holders.end() ? json() : holder_json(found->second);
}

json device_json(const gpu::Device& device, const gpu::Reservations& reservations) {
  json entry{{"index", device.index},
             {"uuid", device.uuid},
             {"model", device.model},
             {"bus_id", device.bus_id},
             {"memory", device.memory},
             {"memory_used", device.memory_used},
             {"compute_capability", device.capability.text()},
             {"compute_mode", gpu::to_string(device.mode)},
             {"mig", device.mig},
             {"slices", json::array()},
             {"processes", processes_json(device.processes)},
             {"held_by", holder_json(reservations, device.uuid)}};
  if (!device.trouble.empty()) entry["trouble"] = device.trouble;
  for (const auto& slice : device.slices)
    entry["slices"].push_back({{"index", slice.index},
                               {"uuid", slice.uuid},
                               {"profile", slice.profile},
                               {"memory", slice.memory},
                               {"processes", processes_json(slice.processes)},
                               {"held_by", holder_json(reservations, slice.uuid)}});
  return entry;
}

json inventory_json(const gpu::Inventory& inventory, const gpu::Reservations& reservations) {
  json document{{"driver", inventory.driver},
                {"cuda", inventory.cuda},
                {"gpus", json::array()},
                {"queue", json::array()}};
  if (inventory.unavailable)
    document["unavailable"] = {{"reason", inventory.unavailable->reason},
                               {"advice", inventory.unavailable->advice}};
  for (const auto& device : inventory.devices)
    document["gpus"].push_back(device_json(device, reservations));
  for (const auto& entry : reservations.queue) {
    auto waiting = holder_json(entry.holder);
    waiting.erase("driver_died");
    waiting.update({{"count", entry.waiting.demand.count},
                    {"candidates", entry.waiting.demand.candidates},
                    {"overtaken", entry.waiting.overtaken},
                    {"waits_for_job_slot", entry.waiting.paused}});
    document["queue"].push_back(waiting);
  }
  return document;
}

std::string holder_text(const gpu::HolderInfo& holder) {
  return holder.step + " of run " + holder.run + " (pid " + std::to_string(holder.pid) +
         (holder.user.empty() ? "" : ", " + holder.user) +
         (holder.gone ? ", dead, but a process of the step is alive)" : ")");
}

std::string occupants(const std::vector<gpu::Process>& processes) {
  return core::joined(processes, ", ", [](const gpu::Process& process) {
    return std::to_string(process.pid) + (process.name.empty() ? "" : " " + process.name) +
           (process.user.empty() ? "" : " (" + process.user + ")");
  });
}

std::string inventory_text(const gpu::Inventory& inventory, const gpu::Reservations& reservations,
                           const Paint& paint) {
  std::string text = "driver " + inventory.driver + ", CUDA up to " + inventory.cuda + "\n";
  if (!inventory.hidden_notice.empty()) text += for_terminal(inventory.hidden_notice) + "\n";
  text += "\n";
  Table table;
  table.add(
      {"GPU", "MODEL", "UUID", "MEMORY", "USED", "CAPABILITY", "MODE", "PROCESSES", "HELD BY"});
  const auto holder = [&](const std::string& uuid) -> Table::Cell {
    const auto found = reservations.holders.find(uuid);
    if (found == reservations.holders.end()) return "";
    return {holder_text(found->second), Colour::yellow};
  };
  for (const auto& device : inventory.devices) {
    const auto index = std::to_string(device.index);
    if (!device.trouble.empty()) {
      table.add(
          {index, device.model, device.uuid, "", "", "", {device.trouble, Colour::red}, "", ""});
      continue;
    }
    table.add({index, device.model, device.uuid, core::format_bytes(device.memory),
               core::format_bytes(device.memory_used), device.capability.text(),
               device.mig ? "MIG" : std::string(gpu::to_string(device.mode)),
               occupants(device.processes), holder(device.uuid)});
    for (const auto& slice : device.slices)
      table.add({index + ":" + std::to_string(slice.index), "  " + slice.profile, slice.uuid,
                 core::format_bytes(slice.memory), "", "", "", occupants(slice.processes),
                 holder(slice.uuid)});
  }
  text += table.render(paint);
  if (reservations.queue.empty()) return text;
  Table queue;
  queue.add({"WAITING", "GPUS", "SINCE", "OVERTAKEN", ""});
  for (const auto& [driver, waiting, waiter] : reservations.queue)
    queue.add({holder_text(waiter),
               std::to_string(waiting.demand.count) + " of " +
                   std::to_string(waiting.demand.candidates.size()),
               core::format_time(waiter.since), std::to_string(waiting.overtaken),
               waiting.paused ? "waits for a job slot (--jobs)" : ""});
  return text + "\n" + queue.render(paint);
}

/// Returns the engine's endpoint if it is on another machine, whose GPUs are not this machine's.
std::string engine_elsewhere() {
  try {
    const auto endpoint = docker::find_endpoint();
    return endpoint.is_of_this_machine() ? std::string() : endpoint.url;
  } catch (const core::EnvironmentError&) {
    return {};  // A command that needs the engine will report the error.
  }
}

std::string how_to_see(const std::string& endpoint) {
  if (endpoint.empty()) return {};
  return "\nThe engine is another machine's (" + for_terminal(endpoint) +
         "): `--orchestrator docker` uses its GPUs, not this machine's. To list them:\n"
         "  docker run --rm --gpus all debian:bookworm-slim nvidia-smi -L\n";
}

}  // namespace

/// Lists the GPUs. Without GPUs, prints an empty list and the reason, with exit code 0.
core::ExitCode gpus_command(Context& context) {
  const auto inventory = gpu::Machine().read();
  const auto reservations = gpu::read_reservations(gpu::units_of(inventory));
  const auto elsewhere = engine_elsewhere();
  if (context.options().json) {
    auto json = inventory_json(inventory, reservations);
    if (!elsewhere.empty()) json["engine_elsewhere"] = elsewhere;
    context.print_json(json);
    return core::ExitCode::ok;
  }
  if (inventory.unavailable || inventory.devices.empty()) {
    std::string text = "no GPU: " +
                       for_terminal(inventory.unavailable ? inventory.unavailable->reason
                                    : !inventory.hidden_notice.empty()
                                        ? inventory.hidden_notice
                                        : "the driver " + inventory.driver + " finds none") +
                       "\n";
    if (inventory.unavailable)
      for (const auto& line : inventory.unavailable->advice)
        text += "  " + context.paint()(Colour::cyan, "hint: ") + for_terminal(line) + "\n";
    context.print(text + how_to_see(elsewhere));
    return core::ExitCode::ok;
  }
  context.print(inventory_text(inventory, reservations, context.paint()) + how_to_see(elsewhere));
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
